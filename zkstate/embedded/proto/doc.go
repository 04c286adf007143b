// Package proto is ZooKeeper's client protocol (3.8) as data: requests are decoded from the body of a frame into typed
// structs, answers are encoded onto a byte slice. It knows no connection, no session and no tree.
//
// Invariants:
//   - a decoder never allocates more than a small multiple of its input: every length and count is compared with the bytes
//     that are really left before anything is made;
//   - a decoder never panics; whatever does not fit is ErrMalformed;
//   - data slices of a decoded request are copies, so the frame may be reused at once.
//
// Integers are big endian. A string or buffer is an int32 length and its bytes, -1 for null; a vector is an int32 count and
// its elements, -1 for null.
package proto
