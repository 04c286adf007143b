package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

// readHead reads what stands before every answer. size is that of the body, which follows.
func (cfg *Config) readHead(in *bufio.Reader) (size, correlation int32, err error) {
	var head [8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, 0, err
	}
	size = int32(binary.BigEndian.Uint32(head[:])) - 4
	if size < 0 || size > cfg.MaxResponseBytes {
		return 0, 0, fmt.Errorf("answer of %d bytes, at most %d are taken", size, cfg.MaxResponseBytes)
	}
	return size, int32(binary.BigEndian.Uint32(head[4:])), nil
}

// readBody reads the answer to req into body, which byte fields of it alias.
func readBody(in *bufio.Reader, req kmsg.Request, body []byte) (kmsg.Response, error) {
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, err
	}
	resp, err := decode(req, body)
	if err != nil {
		return nil, fmt.Errorf("answer to %s version %d: %w", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	return resp, nil
}

// decode reads the answer to req from what follows the correlation id. Byte fields alias body.
func decode(req kmsg.Request, body []byte) (kmsg.Response, error) {
	resp := req.ResponseKind()
	if req.Key() == wire.KeyApiVersions {
		if len(body) >= 2 && int16(binary.BigEndian.Uint16(body)) == kerr.UnsupportedVersion.Code {
			resp.SetVersion(0) // the layout that everybody can read (KIP-511)
		}
	} else if resp.IsFlexible() {
		var err error
		if body, err = wire.SkipTags(body); err != nil {
			return nil, err
		}
	}
	return resp, resp.ReadFrom(body)
}

// whyNoAnswer is what an error of reading means to callers.
func (cfg *Config) whyNoAnswer(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the other side closed the connection: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: no answer within %s", kerr.RequestTimedOut, cfg.Timeout)
	}
	return err
}

func unasked(correlation int32) error {
	return fmt.Errorf("answer with correlation id %d that nobody waits for", correlation)
}
