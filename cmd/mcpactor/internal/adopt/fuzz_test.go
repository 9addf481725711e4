package adopt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a file has: what adopt changes, undo changes back.
func FuzzAdopt(f *testing.F) {
	for path, texts := range samples {
		for _, text := range texts {
			f.Add(path, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, path string, data []byte) {
		d, err := newDocument(path, data)
		if err != nil {
			return
		}
		var adopted []int
		for i := range d.servers {
			d.changed(i, undo) // it may have been written by hand
			next, why := d.changed(i, adopter(installed))
			if d = next; why == "" {
				adopted = append(adopted, i)
			}
		}
		for _, i := range adopted {
			var why string
			d, why = d.changed(i, undo)
			require.Empty(t, why)
		}
		require.Equal(t, string(data), string(d.data))
	})
}
