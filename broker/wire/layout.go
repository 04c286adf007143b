package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A request is looked over before kmsg decodes it. kmsg sets memory aside by the count in front of an array, as
// long as the bytes left could hold elements of the least size, and tagged fields go into maps: of a hostile request it
// can make a hundred times its size, most of it before it meets the error. The look allocates nothing, finds
// every error of structure, and adds up what decoding is going to take. What would take more than
// maxAmplification times its own size is refused; real requests, even of arrays of very short names, stay below.
const (
	maxAmplification = 16
	freeAllocation   = 64 << 10

	maxUnknownTags = 16 // in one place
	tagsCost       = 400
	tagCost        = 100
)

type itemKind uint8

const (
	fixedItem itemKind = iota
	stringItem
	bytesItem
	arrayItem
	tagsItem
)

// item is one field of a layout.
type item struct {
	kind     itemKind
	size     int   // of a fixedItem
	from, to int16 // versions in which it is there
	nullFrom int16 // first version in which it may be null
	inner    []item
	known    map[uint64][]item // of a tagsItem
	cost     int               // what one takes in memory: for an array, one element
}

const never = math.MaxInt16

var parsedLayouts = parseLayouts()

func parseLayouts() map[int16][]item {
	parsed := make(map[int16][]item, len(layouts))
	for key, text := range layouts {
		p := layoutParser{text: text}
		parsed[key] = p.items("")
	}
	return parsed
}

// layoutParser reads the notation of layouts. A mistake there is found by the first start of any test.
type layoutParser struct {
	text string
	pos  int
}

// items reads up to one of the characters of end, or to the end of the text.
func (p *layoutParser) items(end string) []item {
	var items []item
	for {
		p.skip(" ")
		if p.pos == len(p.text) || strings.IndexByte(end, p.text[p.pos]) >= 0 {
			return items
		}
		items = append(items, p.item())
	}
}

func (p *layoutParser) item() item {
	it := item{to: never, nullFrom: never}
	switch {
	case p.skip("s"):
		it.kind = stringItem
		p.nullable(&it)
	case p.skip("b"):
		it.kind = bytesItem
		p.nullable(&it)
	case p.skip("["):
		it.kind = arrayItem
		p.nullable(&it)
		it.inner = p.items("]")
		p.must("]")
		it.cost = elementCost(it.inner)
	case p.skip("t"):
		it.kind = tagsItem
		if p.skip("{") {
			it.known = make(map[uint64][]item)
			for !p.skip("}") {
				tag := p.number()
				p.must(":")
				it.known[uint64(tag)] = p.items("|}")
				p.skip("| ")
			}
		}
	default:
		it.size = p.number()
	}
	if p.skip("@") {
		it.from = int16(p.number())
		if !p.skip("+") {
			p.must("-")
			it.to = int16(p.number())
		}
	}
	return it
}

func (p *layoutParser) nullable(it *item) {
	if !p.skip("?") {
		return
	}
	it.nullFrom = 0
	if p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		it.nullFrom = int16(p.number())
		p.must("+")
	}
}

func (p *layoutParser) skip(text string) bool {
	if !strings.HasPrefix(p.text[p.pos:], text) {
		return false
	}
	p.pos += len(text)
	return true
}

func (p *layoutParser) must(text string) {
	if !p.skip(text) {
		panic(fmt.Sprintf("layout %q: no %q at %d", p.text, text, p.pos))
	}
}

func (p *layoutParser) number() int {
	end := p.pos
	for end < len(p.text) && p.text[end] >= '0' && p.text[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(p.text[p.pos:end])
	if err != nil {
		panic(fmt.Sprintf("layout %q: no number at %d", p.text, p.pos))
	}
	p.pos = end
	return n
}

// elementCost is an upper bound of what one element of an array takes in memory, not counting what it points to.
// An array of plain numbers is packed; in a struct every field is aligned.
func elementCost(inner []item) int {
	if len(inner) == 1 && inner[0].kind == fixedItem {
		return inner[0].size
	}
	cost := 0
	for i := range inner {
		cost += fieldCost(&inner[i])
	}
	return cost
}

func fieldCost(it *item) int {
	switch it.kind {
	case stringItem:
		return 16
	case bytesItem, arrayItem:
		return 24
	case tagsItem:
		cost := 8
		for _, known := range it.known {
			for i := range known {
				cost += fieldCost(&known[i])
			}
		}
		return cost
	default:
		return max(it.size, 8)
	}
}

// inspection walks over a body.
type inspection struct {
	version  int16
	flexible bool
	src      []byte
	cost     int // what decoding allocates
}

// inspect checks that body begins with a request of this layout, and that decoding it takes a bounded amount of
// memory. It returns what stands behind the request.
func inspect(layout []item, version int16, flexible bool, body []byte) (rest []byte, err error) {
	in := inspection{version: version, flexible: flexible, src: body}
	if err := in.all(layout); err != nil {
		return nil, err
	}
	if in.cost > maxAmplification*len(body)+freeAllocation {
		return nil, fmt.Errorf("%d bytes would become %d", len(body), in.cost)
	}
	return in.src, nil
}

func (in *inspection) all(items []item) error {
	for i := range items {
		it := &items[i]
		if in.version < it.from || in.version > it.to {
			continue
		}
		if err := in.one(it); err != nil {
			return err
		}
	}
	return nil
}

func (in *inspection) one(it *item) error {
	switch it.kind {
	case fixedItem:
		return in.skip(it.size)
	case stringItem:
		return in.text(it)
	case bytesItem:
		n, err := in.length(it, false)
		if err != nil {
			return err
		}
		return in.skip(max(n, 0))
	case arrayItem:
		return in.array(it)
	default:
		return in.tags(it)
	}
}

func (in *inspection) skip(n int) error {
	if n > len(in.src) {
		return fmt.Errorf("%d bytes announced, %d are left", n, len(in.src))
	}
	in.src = in.src[n:]
	return nil
}

func (in *inspection) text(it *item) error {
	n, err := in.length(it, true)
	if err != nil || n < 0 {
		return err
	}
	in.cost += n + 8 // allocations are rounded up
	if it.nullFrom != never {
		in.cost += 16
	}
	return in.skip(n)
}

func (in *inspection) array(it *item) error {
	n, err := in.length(it, false)
	if err != nil || n < 0 {
		return err
	}
	if n > len(in.src) {
		return fmt.Errorf("%d elements announced, %d bytes are left", n, len(in.src))
	}
	in.cost += n * it.cost
	if len(it.inner) == 1 && it.inner[0].kind == fixedItem {
		return in.skip(n * it.inner[0].size)
	}
	for range n {
		if err := in.all(it.inner); err != nil {
			return err
		}
	}
	return nil
}

// length reads what stands in front of a string, of bytes or of an array; -1 is null.
func (in *inspection) length(it *item, short bool) (int, error) {
	n := 0
	switch {
	case in.flexible:
		value, rest, err := uvarint(in.src)
		if err != nil {
			return 0, err
		}
		n, in.src = int(value)-1, rest
	case short:
		if len(in.src) < 2 {
			return 0, fmt.Errorf("ends inside a length")
		}
		n = int(int16(binary.BigEndian.Uint16(in.src)))
		in.src = in.src[2:]
	default:
		if len(in.src) < 4 {
			return 0, fmt.Errorf("ends inside a length")
		}
		n = int(int32(binary.BigEndian.Uint32(in.src)))
		in.src = in.src[4:]
	}
	if n < -1 || n == -1 && in.version < it.nullFrom {
		return 0, fmt.Errorf("length %d where it cannot be", n)
	}
	return n, nil
}

// tags checks a section of tagged fields. A known field's content has to fill the size announced for it.
func (in *inspection) tags(it *item) error {
	if !in.flexible {
		return nil
	}
	count, rest, err := uvarint(in.src)
	if err != nil {
		return err
	}
	in.src = rest
	unknown := 0
	for ; count > 0; count-- {
		tag, rest, err := uvarint(in.src)
		if err != nil {
			return err
		}
		size, rest, err := uvarint(rest)
		if err != nil {
			return err
		}
		if size > uint64(len(rest)) {
			return fmt.Errorf("tagged field of %d bytes, %d are left", size, len(rest))
		}
		in.src = rest[size:]
		known, ok := it.known[tag]
		if !ok {
			if unknown++; unknown > maxUnknownTags {
				return fmt.Errorf("more than %d unknown tagged fields", maxUnknownTags)
			}
			in.cost += tagCost
			continue
		}
		if err := in.knownTag(known, rest[:size]); err != nil {
			return err
		}
	}
	if unknown > 0 {
		in.cost += tagsCost
	}
	return nil
}

func (in *inspection) knownTag(items []item, content []byte) error {
	inner := inspection{version: in.version, flexible: true, src: content}
	if err := inner.all(items); err != nil {
		return err
	}
	if len(inner.src) > 0 {
		return fmt.Errorf("%d bytes are left over in a tagged field", len(inner.src))
	}
	in.cost += inner.cost
	return nil
}
