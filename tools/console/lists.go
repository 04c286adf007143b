package console

import (
	"net/url"
	"strconv"
	"strings"
)

const rowsPerPage = 100

// pageOf is the part of a list that one page shows.
type pageOf[T any] struct {
	Rows            []T
	Pages           int
	From, To, Total int64
	Previous, Next  string // addresses of the neighbours; "" where there is none
}

// paged takes the rows of the page that is asked for; a page that is not there is the last.
func paged[T any](list []T, q question) pageOf[T] {
	p := pageOf[T]{Pages: (len(list) + rowsPerPage - 1) / rowsPerPage, Total: int64(len(list))}
	n, err := strconv.Atoi(q.get("page"))
	if err != nil || n < 1 {
		n = 1
	}
	n = max(1, min(n, p.Pages))
	from := (n - 1) * rowsPerPage
	to := min(from+rowsPerPage, len(list))
	p.Rows, p.From, p.To = list[from:to], int64(from+1), int64(to)
	if n > 1 {
		p.Previous = q.address("page", strconv.Itoa(n-1))
	}
	if n < p.Pages {
		p.Next = q.address("page", strconv.Itoa(n+1))
	}
	return p
}

// with is what the address asks for, with one value changed; "" takes it away.
func (q question) with(name, value string) url.Values {
	changed := url.Values{}
	for other, values := range q.values {
		changed[other] = values
	}
	if changed.Set(name, value); value == "" {
		changed.Del(name)
	}
	return changed
}

// address is this page, with one value changed. Templates get addresses whole: what they put behind a ? they would escape once more.
func (q question) address(name, value string) string {
	return q.path + "?" + q.with(name, value).Encode()
}

// chip is a filter of a list that can be switched on, and off again.
type chip[T any] struct {
	Name, Title, Address string
	On                   bool
	is                   func(row T) bool
}

// chosen are the chips as links, and what the one that is on leaves.
func chosen[T any](chips []chip[T], q question) (shown []chip[T], keep func(row T) bool) {
	keep = func(T) bool { return true }
	for _, one := range chips {
		other := one.Name
		if one.On = q.get("chip") == one.Name; one.On {
			keep, other = one.is, ""
		}
		one.Address = q.address("chip", other)
		shown = append(shown, one)
	}
	return shown, keep
}

// matching tells whether names hold all words of a search, in small or capital letters.
func matching(search string) func(name string) bool {
	words := strings.Fields(strings.ToLower(search))
	return func(name string) bool {
		name = strings.ToLower(name)
		for _, w := range words {
			if !strings.Contains(name, w) {
				return false
			}
		}
		return true
	}
}
