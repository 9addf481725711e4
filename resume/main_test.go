package resume

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// testHolder is set for the process that holds a file: see [hold].
const testHolder = "RESUME_TEST_HOLDER"

func TestMain(m *testing.M) {
	if path := os.Getenv(testHolder); path != "" {
		hold(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// hold saves records, says so, and holds the file until it is killed or its
// stdin ends.
func hold(path string) {
	f, err := Open(path, Config{})
	for i := uint64(0); err == nil && i < 10; i++ {
		err = f.Save(context.Background(), key("a", fmt.Sprint(i)), sample(i))
	}
	fmt.Println("holding", err)
	io.Copy(io.Discard, os.Stdin)
}
