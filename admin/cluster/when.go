package cluster

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ParseDateTime reads YYYY-MM-DDTHH:mm:SS.sss, in UTC or with Z, +hh:mm, +hhmm or +hh after it.
func ParseDateTime(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04:05.000", "2006-01-02T15:04:05.000Z07:00", "2006-01-02T15:04:05.000Z0700", "2006-01-02T15:04:05.000Z07"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	if !strings.Contains(text, "T") {
		return time.Time{}, errors.New("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
	}
	return time.Time{}, fmt.Errorf("Unparseable date: \"%s\"", text)
}

var durationForm = regexp.MustCompile(`(?i)^([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?$`)

// ParseDuration reads PnDTnHnMnS (ISO 8601).
func ParseDuration(text string) (time.Duration, error) {
	bad := errors.New("Text cannot be parsed to a Duration")
	m := durationForm.FindStringSubmatch(text)
	if m == nil || strings.EqualFold(m[3], "T") || m[2]+m[4]+m[5]+m[6] == "" {
		return 0, bad
	}
	const most = 100 * 365 * 24 * time.Hour
	var total time.Duration
	for i, unit := range map[int]time.Duration{2: 24 * time.Hour, 4: time.Hour, 5: time.Minute, 6: time.Second} {
		if m[i] == "" {
			continue
		}
		n, err := strconv.ParseInt(m[i], 10, 64)
		if err != nil || n > int64(most/unit) || n < -int64(most/unit) {
			return 0, bad
		}
		total += time.Duration(n) * unit
	}
	if m[7] != "" {
		n, _ := strconv.ParseInt((m[7] + "000000000")[:9], 10, 64)
		if strings.HasPrefix(m[6], "-") {
			n = -n
		}
		total += time.Duration(n)
	}
	if m[1] == "-" {
		total = -total
	}
	return total, nil
}
