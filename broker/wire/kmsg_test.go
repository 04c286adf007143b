package wire

import (
	"math/rand/v2"
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fill puts random content into every field of a message; arrays have fewer than most elements.
func fill(rnd *rand.Rand, most int, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rnd.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(rnd.Uint64()) >> rnd.IntN(64))
	case reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(rnd.Uint32()) >> rnd.IntN(32))
	case reflect.Float64:
		v.SetFloat(rnd.Float64())
	case reflect.String:
		v.SetString(string(randomBytes(rnd, 20)))
	case reflect.Pointer:
		if rnd.IntN(3) == 0 {
			v.SetZero()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(rnd, most, v.Elem())
	case reflect.Array:
		for i := range v.Len() {
			fill(rnd, most, v.Index(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(randomBytes(rnd, 200))
			return
		}
		n := rnd.IntN(most)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(rnd, most, v.Index(i))
		}
	case reflect.Struct:
		fillStruct(rnd, most, v)
	}
}

func fillStruct(rnd *rand.Rand, most int, v reflect.Value) {
	if tags, ok := v.Addr().Interface().(*kmsg.Tags); ok {
		for range rnd.IntN(8) / 5 {
			tags.Set(1000+rnd.Uint32N(1000), randomBytes(rnd, 10))
		}
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Name != "Version" {
			fill(rnd, most, v.Field(i))
		}
	}
}

func randomBytes(rnd *rand.Rand, most int) []byte {
	p := make([]byte, rnd.IntN(most))
	for i := range p {
		p[i] = byte(rnd.Uint32())
	}
	return p
}

// randomRequest makes a request of a version with random content.
func randomRequest(rnd *rand.Rand, key, version int16) kmsg.Request {
	return bigRequest(rnd, key, version, 4)
}

// bigRequest is randomRequest with longer arrays.
func bigRequest(rnd *rand.Rand, key, version int16, most int) kmsg.Request {
	req := kmsg.RequestForKey(key)
	fill(rnd, most, reflect.ValueOf(req).Elem())
	req.SetVersion(version)
	return req
}
