package exec

import "io"

// maxUnwritten bounds the lines of output that the reader of stdout has not taken. Jobs that
// have a response wait until there are fewer.
const maxUnwritten = 100

// output writes lines in order, without blocking the runner. Only the goroutine of the runner
// calls its methods.
type output struct {
	unwritten [][]byte // in order
	writing   bool     // a line is being written
	broken    bool     // writing has failed; further lines are discarded

	toWrite chan []byte
	written chan error // the outcome of writing a line
}

// newOutput starts a goroutine that writes to out. close ends it.
func newOutput(out io.Writer) *output {
	o := &output{toWrite: make(chan []byte), written: make(chan error, 1)}
	go func() {
		for line := range o.toWrite {
			_, err := out.Write(line)
			o.written <- err
		}
	}()
	return o
}

func (o *output) close() { close(o.toWrite) }

// print adds a line.
func (o *output) print(data []byte) {
	if !o.broken {
		o.unwritten = append(o.unwritten, append(data, '\n'))
	}
}

// next returns the next line and the channel to send it to. The channel is nil if no line
// can be written now.
func (o *output) next() (to chan<- []byte, line []byte) {
	if o.writing || len(o.unwritten) == 0 {
		return nil, nil
	}
	return o.toWrite, o.unwritten[0]
}

// onSent records that the next line has been sent.
func (o *output) onSent() { o.unwritten, o.writing = o.unwritten[1:], true }

// onWritten records the outcome of writing a line. It reports whether the output broke.
func (o *output) onWritten(err error) (broke bool) {
	o.writing = false
	if err == nil || o.broken {
		return false
	}
	o.broken, o.unwritten = true, nil
	return true
}

func (o *output) full() bool { return len(o.unwritten) >= maxUnwritten }

// idle reports whether all lines are written or discarded.
func (o *output) idle() bool { return len(o.unwritten) == 0 && !o.writing }
