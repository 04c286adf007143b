package console

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
)

// functions are what templates can say beside the language's own.
var functions = template.FuncMap{
	"bytes": func(n int64) string {
		if n < 0 {
			return "–"
		}
		return cluster.ByteCount(n)
	},
	"number": number,
	"count": func(n int, one string) string {
		if n != 1 {
			one += "s"
		}
		return number(int64(n)) + " " + one
	},
	"ids":     func(list []int32) string { return joinIDs(list) },
	"time":    func(t time.Time) string { return t.Format(time.DateTime) },
	"clock":   func(t time.Time) string { return t.Format(time.TimeOnly) },
	"instant": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"millis":  func(t time.Time) int64 { return t.UnixMilli() },
	"link":    link,
	"join":    func(list []string) string { return strings.Join(list, ", ") },
	"few":     few,
	"percent": func(part, whole int64) int64 {
		if whole <= 0 {
			return 0
		}
		return part * 100 / whole
	},
	"source": source,
	"list":   func(items ...any) []any { return items },
}

// number shows a number in groups of three digits; a negative one is not known.
func number(n int64) string {
	if n < 0 {
		return "–"
	}
	digits := strconv.FormatInt(n, 10)
	var out []byte
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, "\u202f"...) // a narrow space that does not break
		}
		out = append(out, digits[i])
	}
	return string(out)
}

func joinIDs(list []int32) string {
	if len(list) == 0 {
		return "–"
	}
	var parts []string
	for _, id := range list {
		parts = append(parts, strconv.Itoa(int(id)))
	}
	return strings.Join(parts, ",")
}

// link is an address of a path and its values, as name, value, name, value.
func link(path string, values ...any) string {
	q := url.Values{}
	for i := 0; i+1 < len(values); i += 2 {
		q.Set(fmt.Sprint(values[i]), fmt.Sprint(values[i+1]))
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// source says where a setting comes from.
func source(s kmsg.ConfigSource) string {
	switch s {
	case kmsg.ConfigSourceDynamicTopicConfig:
		return "the topic"
	case kmsg.ConfigSourceDynamicBrokerConfig:
		return "this broker, dynamic"
	case kmsg.ConfigSourceDynamicDefaultBrokerConfig:
		return "all brokers, dynamic"
	case kmsg.ConfigSourceStaticBrokerConfig:
		return "the broker's file"
	case kmsg.ConfigSourceDefaultConfig:
		return "default"
	}
	return strings.ToLower(s.String())
}
