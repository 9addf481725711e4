package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds one line of input.
const maxLine = 64 << 20

// writeLines writes what comes, a line at once, and says of each what came of
// it.
func writeLines(out io.Writer, lines <-chan []byte, written chan<- error) {
	for l := range lines {
		_, err := out.Write(l)
		written <- err
	}
}

// line is a line of input, or what is wrong with it.
type line struct {
	text []byte
	err  error
}

// readLines sends the lines of in until its end, or the end of ctx. A reader
// that blocks keeps its goroutine until it returns.
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

// readLine reads one line. The rest of one that is too long is skipped.
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
