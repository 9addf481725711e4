package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds one line of input, in bytes.
const maxLine = 64 << 20

// line is a line of input, or the error in its place.
type line struct {
	text []byte
	err  error
}

// readLines sends the lines of in until the end of in or of ctx, and then closes to. If in
// blocks, readLines returns only when in does.
func readLines(ctx context.Context, in io.Reader, to chan<- line) {
	defer close(to)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		l, err := readLine(r)
		if err == nil || len(l.text) > 0 || l.err != nil {
			select {
			case to <- l:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine reads one line. It skips the rest of a line that is too long.
func readLine(r *bufio.Reader) (l line, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(l.text)+len(part) > maxLine {
			l = line{err: fmt.Errorf("has more than %d bytes", maxLine)}
		}
		if l.err == nil {
			l.text = append(l.text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && !errors.Is(err, io.EOF) && l.err == nil:
			return line{err: err}, err
		default:
			return l, err
		}
	}
}
