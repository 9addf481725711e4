package serve

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// keySize is the size of the key of the gateway, in bytes.
const keySize = 32

// readKey returns the key in a file. If there is no file, it makes one, with a random key. Processes that do so at the same time
// get the same key. Only the user can read the file.
func readKey(file string) ([]byte, error) {
	key, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(file); err != nil {
			return nil, err
		}
		key, err = os.ReadFile(file)
	}
	switch {
	case err != nil:
		return nil, err
	case len(key) != keySize:
		return nil, fmt.Errorf("%s has %d bytes, and is no key: delete it", file, len(key))
	}
	return key, nil
}

// makeKey writes a random key into a file, unless the file is there. Others see the file only when it is whole.
func makeKey(file string) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // a file that is left has another key, which nothing uses
	key := make([]byte, keySize)
	rand.Read(key)
	_, err = temporary.Write(key)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err = os.Link(temporary.Name(), file); errors.Is(err, fs.ErrExist) { // another process was faster
		return nil
	}
	return err
}
