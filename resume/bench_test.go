package resume

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/mcpactor/mcpactor/internal/entry"
)

// BenchmarkSave saves from many callers at once, and compares the store with a
// transaction for each record (Update) and with bbolt's batches (Batch). An operation
// is one save of each caller.
func BenchmarkSave(b *testing.B) {
	for _, callers := range []int{1, 64} {
		for _, by := range []string{"store", "update", "batch"} {
			b.Run(fmt.Sprintf("callers=%d/by=%s", callers, by), func(b *testing.B) {
				b.ReportAllocs()
				f := openAt(b, pathIn(b), Config{})
				save := func(i int) error {
					k, r := key("a", fmt.Sprint(i)), sample(1)
					if by == "store" {
						return f.Save(ctx, k, r)
					}
					value, err := entry.Encode(r, time.Now())
					require.NoError(b, err)
					write := f.db.Update
					if by == "batch" {
						write = f.db.Batch
					}
					return write(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(keyBytes(k), value) })
				}
				for b.Loop() {
					var all sync.WaitGroup
					for i := range callers {
						all.Go(func() {
							if err := save(i); err != nil {
								b.Error(err)
							}
						})
					}
					all.Wait()
				}
			})
		}
	}
}
