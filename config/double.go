package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// javaDouble is what Double.parseDouble reads, beside NaN and Infinity: decimal or hexadecimal, with the suffix of a literal.
var javaDouble = regexp.MustCompile(`^([+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+|NaN|Infinity))[dDfF]?$`)

// ParseDouble reads a DOUBLE as Kafka does, so that a file that Kafka starts with means the same here: what is too large is infinite, and NaN is a number.
func ParseDouble(text string) (float64, error) {
	m := javaDouble.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if strings.HasSuffix(m[1], "NaN") {
		return math.NaN(), nil // Java's may have a sign
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	return f, err
}

// FormatDouble writes a number as Double.toString does: at least one digit after the point, and with an exponent below a thousandth and from ten million on.
func FormatDouble(f float64) string {
	if math.IsInf(f, 0) {
		return strings.TrimPrefix(strings.Replace(strconv.FormatFloat(f, 'f', -1, 64), "Inf", "Infinity", 1), "+")
	}
	if abs := math.Abs(f); f != 0 && (abs < 1e-3 || abs >= 1e7) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		n, _ := strconv.Atoi(exponent)
		return fmt.Sprintf("%sE%d", mantissa, n)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") && !math.IsNaN(f) {
		s += ".0"
	}
	return s
}
