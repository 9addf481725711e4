package resume

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// testHolder is set in the environment of a process that keeps a file open: see [hold].
const testHolder = "RESUME_TEST_HOLDER"

func TestMain(m *testing.M) {
	if path := os.Getenv(testHolder); path != "" {
		hold(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// hold saves records, reports it on stdout, and keeps the file open until it is killed
// or its stdin ends.
func hold(path string) {
	f, err := Open(path, Config{})
	for i := uint64(0); err == nil && i < 10; i++ {
		err = f.Save(context.Background(), key("a", fmt.Sprint(i)), sample(i))
	}
	fmt.Println("holding", err)
	io.Copy(io.Discard, os.Stdin)
}
