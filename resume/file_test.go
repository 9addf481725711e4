package resume

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/mcpactor/mcpactor/internal/entry"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

var ctx = context.Background()

// put writes a value directly to the database.
func put(t *testing.T, f *File, k messages.Key, value []byte) {
	t.Helper()
	require.NoError(t, f.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(keyBytes(k), value) }))
}

// unchanged returns a function that checks that a file has not changed since.
func unchanged(t *testing.T, path string) func() {
	t.Helper()
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	mode, err := os.Stat(path)
	require.NoError(t, err)
	return func() {
		t.Helper()
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, after))
		now, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode.Mode(), now.Mode())
		require.Equal(t, mode.ModTime(), now.ModTime())
	}
}

func TestRecordsSurviveReopening(t *testing.T) {
	path := pathIn(t)
	for i := range uint64(3) {
		f := openAt(t, path, Config{})
		if i > 0 {
			r, err := f.Load(ctx, key("a", "b"))
			require.NoError(t, err)
			require.Equal(t, sample(i-1), r)
		}
		require.NoError(t, f.Save(ctx, key("a", "b"), sample(i)))
		require.NoError(t, f.Close())
	}
}

func TestAMissingDirectoryIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "sessions.db")
	_, err := Open(path, Config{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "resume: open "+path+": file does not exist: the directory "+filepath.Dir(path)+" is missing: create it, with mode 0700")
}

func TestAnEmptyPathIsRefused(t *testing.T) {
	_, err := Open("", Config{})
	require.ErrorContains(t, err, "the path is empty")
}

func TestAnAgeThatIsNegativeIsRefused(t *testing.T) {
	path := pathIn(t)
	_, err := Open(path, Config{MaxAge: -time.Hour})
	require.ErrorContains(t, err, "maxAge: -1h0m0s is negative: -1 keeps all records")
	require.NoFileExists(t, path)
}

func TestAFileThatIsNoStoreIsRefusedAndNotChanged(t *testing.T) {
	foreign := pathIn(t)
	db, err := bbolt.Open(foreign, 0o600, &bbolt.Options{NoFreelistSync: true}) // as etcd does
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }))
	require.NoError(t, db.Close())
	theirs, err := os.ReadFile(foreign)
	require.NoError(t, err)

	for name, content := range map[string][]byte{
		"a byte":             {7},
		"text":               []byte("dear diary, " + secret),
		"a page and a bit":   bytes.Repeat([]byte("dear diary "), 500),
		"long":               bytes.Repeat([]byte(secret), 50_000),
		"zeros":              make([]byte, 64<<10),
		"another's database": theirs,
	} {
		t.Run(name, func(t *testing.T) {
			path := pathIn(t)
			require.NoError(t, os.WriteFile(path, content, 0o600))
			same := unchanged(t, path)
			for range 2 { // it is not locked afterwards
				_, err := Open(path, Config{})
				require.ErrorIs(t, err, errForeign)
				require.NotContains(t, err.Error(), secret)
			}
			same()
		})
	}
	t.Run("a directory", func(t *testing.T) {
		_, err := Open(t.TempDir(), Config{})
		require.ErrorIs(t, err, errForeign)
	})
	t.Run("an empty file is a new one", func(t *testing.T) {
		path := pathIn(t)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		openAt(t, path, Config{})
	})
}

// filled returns the path and the size of a store with 300 records.
func filled(t *testing.T) (path string, size int64) {
	t.Helper()
	path = pathIn(t)
	f := openAt(t, path, Config{})
	var batch []*write
	for i := range 300 {
		value, err := entry.Encode(sample(1), time.Now())
		require.NoError(t, err)
		batch = append(batch, &write{key: keyBytes(key("a", fmt.Sprint(i))), value: value})
	}
	require.NoError(t, f.commit(batch))
	require.NoError(t, f.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	return path, info.Size()
}

func TestADamagedFileIsAnErrorAndNoCrash(t *testing.T) {
	const page = 4 << 10
	t.Run("cut off", func(t *testing.T) {
		for _, part := range []int64{4, 3, 2} {
			path, size := filled(t)
			require.NoError(t, os.Truncate(path, size/part))
			same := unchanged(t, path)
			for range 2 { // it is not locked afterwards
				_, err := Open(path, Config{})
				require.ErrorIs(t, err, ErrDamaged)
			}
			same()
		}
	})
	t.Run("overwritten", func(t *testing.T) {
		path, size := filled(t)
		overwrite(t, path, 2*page, size)
		for range 2 { // it is not locked afterwards
			_, err := Open(path, Config{})
			require.ErrorIs(t, err, ErrDamaged)
			require.NotContains(t, err.Error(), secret)
		}
	})
	for name, first := range map[string]func(*File) error{
		"overwritten in use, then written": func(f *File) error { return f.Save(ctx, key("a", "1"), sample(2)) },
		"overwritten in use, then swapped": func(f *File) error {
			_, err := f.Swap(ctx, key("a", "1"), 0, &mcpbridge.Record{Version: 1})
			return err
		},
		"overwritten in use, then read": func(f *File) error { _, err := f.Load(ctx, key("a", "1")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			path, size := filled(t)
			f := openAt(t, path, Config{})
			overwrite(t, path, 2*page, size)
			require.ErrorIs(t, first(f), ErrDamaged)
			require.ErrorIs(t, f.Save(ctx, key("a", "b"), sample(1)), ErrDamaged)
			require.ErrorIs(t, f.Delete(ctx, key("a", "b")), ErrDamaged)
			_, err := f.Load(ctx, key("a", "b"))
			require.ErrorIs(t, err, ErrDamaged)
			require.NoError(t, f.Close())
			require.NoError(t, os.Truncate(path, 0))
			openAt(t, path, Config{}) // it is not locked afterwards
		})
	}
	t.Run("emptied in use, then read", func(t *testing.T) {
		path, _ := filled(t)
		f := openAt(t, path, Config{})
		require.NoError(t, os.Truncate(path, 0))
		_, err := f.Load(ctx, key("a", "1"))
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorIs(t, f.Save(ctx, key("a", "1"), sample(2)), ErrDamaged)
		require.NoError(t, f.Close())
		openAt(t, path, Config{}) // as a new one
	})
	t.Run("emptied in use, then written", func(t *testing.T) { // bbolt's Batch would end the process
		path, _ := filled(t)
		f := openAt(t, path, Config{})
		require.NoError(t, os.Truncate(path, 0))
		require.ErrorIs(t, f.Save(ctx, key("a", "1"), sample(2)), ErrDamaged)
		require.NoError(t, f.Close())
	})
}

func overwrite(t *testing.T, path string, from, to int64) {
	t.Helper()
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = w.WriteAt(bytes.Repeat([]byte{0xa5}, int(to-from)), from)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func TestAGarbageRecordIsSaidWithoutItsContent(t *testing.T) {
	path := pathIn(t)
	k := key("a", "b")
	for _, garbage := range []string{
		secret, "", "null", "{}", "[]", `{"record":null}`, `{"record":{"sessionId":"` + secret, `{"record":"` + secret + `"}`,
		`{"record":{"generation":"` + secret + `"}}`, `{"saved":"` + secret + `","record":{}}`, "\xff\x00",
	} {
		f := openAt(t, path, Config{})
		require.NoError(t, f.Save(ctx, key("a", "other"), sample(2)))
		put(t, f, k, []byte(garbage))
		require.NoError(t, f.Close())

		f = openAt(t, path, Config{}) // Open keeps it, because it has no age
		_, err := f.Load(ctx, k)
		require.ErrorIs(t, err, ErrGarbage, "%q", garbage)
		require.ErrorContains(t, err, "resume: load a/b: ")
		require.NotContains(t, err.Error(), secret)
		other, err := f.Load(ctx, key("a", "other"))
		require.NoError(t, err)
		require.Equal(t, sample(2), other)

		require.NoError(t, f.Save(ctx, k, sample(1)))
		r, err := f.Load(ctx, k)
		require.NoError(t, err)
		require.Equal(t, sample(1), r)
		require.NoError(t, f.Close())
	}
}

func TestOldRecordsAreDeletedByOpen(t *testing.T) {
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	remaining := func(maxAge time.Duration) []string {
		path := pathIn(t)
		f := openAt(t, path, Config{now: clock})
		require.NoError(t, f.Save(ctx, key("a", "now"), sample(1)))
		put(t, f, key("a", "30 days"), asKept(t, "2026-03-01T12:00:00Z", sample(1)))
		put(t, f, key("a", "30 days and a second"), asKept(t, "2026-03-01T12:59:59+01:00", sample(1)))
		put(t, f, key("a", "years"), asKept(t, "1999-01-01T00:00:00Z", sample(1)))
		put(t, f, key("a", "the future"), asKept(t, "2999-01-01T00:00:00Z", sample(1)))
		put(t, f, key("a", "never"), []byte(`{"record":{}}`))
		require.NoError(t, f.Close())
		f = openAt(t, path, Config{MaxAge: maxAge, now: clock})
		var scopes []string
		require.NoError(t, f.db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucket).ForEach(func(k, _ []byte) error {
				scopes = append(scopes, strings.TrimPrefix(string(k), "\x01a"))
				return nil
			})
		}))
		require.NoError(t, f.Close())
		return scopes
	}
	require.Equal(t, []string{"30 days", "never", "now", "the future"}, remaining(0))
	require.Equal(t, []string{"30 days", "30 days and a second", "never", "now", "the future"}, remaining(30*24*time.Hour+time.Second))
	require.Equal(t, []string{"never", "now", "the future"}, remaining(time.Nanosecond))
	require.Len(t, remaining(-1), 6)

	t.Run("saving again makes it young", func(t *testing.T) {
		path := pathIn(t)
		for range 5 {
			f := openAt(t, path, Config{now: clock})
			require.NoError(t, f.Save(ctx, key("a", "b"), sample(1)))
			require.NoError(t, f.Close())
			now = now.Add(20 * 24 * time.Hour)
		}
		r, err := openAt(t, path, Config{now: clock}).Load(ctx, key("a", "b"))
		require.NoError(t, err)
		require.NotNil(t, r)
	})
	t.Run("opening writes nothing when nothing is old", func(t *testing.T) {
		path, _ := filled(t)
		same := unchanged(t, path)
		require.NoError(t, openAt(t, path, Config{}).Close())
		same()
	})
}

func TestAClosedStoreSaysSo(t *testing.T) {
	f := openAt(t, pathIn(t), Config{})
	var all sync.WaitGroup
	for range 4 { // while it is being used
		all.Go(func() {
			for range 20 {
				_, err := f.Load(ctx, key("a", "b"))
				if err = errors.Join(err, f.Save(ctx, key("a", "b"), sample(1))); err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	_, err := f.Load(ctx, key("a", "b"))
	require.EqualError(t, err, "resume: load a/b: the store is closed")
	require.ErrorIs(t, f.Save(ctx, key("a", "b"), sample(1)), ErrClosed)
	require.ErrorIs(t, f.Delete(ctx, key("a", "b")), ErrClosed)
	require.NoError(t, f.Close())
}

// watched is a context that reports when its Done method is called.
type watched struct {
	context.Context
	waits chan struct{}
}

func (w watched) Done() <-chan struct{} {
	w.waits <- struct{}{}
	return w.Context.Done()
}

// blocked makes writes of a store block until release is called. A Save of the key a/0
// has begun, and Saves of a/1 and a/2 wait.
func blocked(ctx context.Context, f *File) (begun chan error, waiting chan error, release func()) {
	entered, disk := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() {
		close(entered)
		<-disk
	})
	f.commit = func(batch []*write) error {
		hold()
		return f.apply(batch)
	}
	begun, waiting = make(chan error, 1), make(chan error, 2)
	go func() { begun <- f.Save(ctx, key("a", "0"), sample(1)) }()
	<-entered
	for i := range 2 {
		w := watched{ctx, make(chan struct{})}
		go func() { waiting <- f.Save(w, key("a", fmt.Sprint(1+i)), sample(1)) }()
		<-w.waits
	}
	return begun, waiting, func() { close(disk) }
}

func TestAContextThatEndsEndsTheWaitForTheDisk(t *testing.T) {
	f := openAt(t, pathIn(t), Config{})
	patience, cancel := context.WithCancel(ctx)
	begun, waiting, release := blocked(patience, f)
	cancel()
	for _, err := range []error{<-begun, <-waiting, <-waiting} {
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err := f.Load(ctx, key("a", "0")) // a read does not wait
	require.NoError(t, err)
	release()

	require.NoError(t, f.Delete(ctx, key("a", "other")))
	for i, want := range []*mcpbridge.Record{sample(1), nil, nil} { // only the write that had begun was done
		r, err := f.Load(ctx, key("a", fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, want, r)
	}
}

func TestCloseFinishesWhatWasBegunAndRefusesWhatWaits(t *testing.T) {
	path := pathIn(t)
	f := openAt(t, path, Config{})
	begun, waiting, release := blocked(ctx, f)
	closed := make(chan error)
	go func() { closed <- f.Close() }()
	for range 2 {
		require.ErrorIs(t, <-waiting, ErrClosed)
	}
	release()
	require.NoError(t, <-begun)
	require.NoError(t, <-closed)
	f = openAt(t, path, Config{})
	for i, want := range []*mcpbridge.Record{sample(1), nil, nil} {
		r, err := f.Load(ctx, key("a", fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, want, r)
	}
}

func TestWritesThatWaitShareATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &File{writes: make(chan *write)}
		for range maxBatch + 10 {
			go func() { f.writes <- &write{} }()
		}
		synctest.Wait()
		require.Len(t, f.gather(<-f.writes), maxBatch)
		require.Len(t, f.gather(<-f.writes), 10)
	})
}

func TestAKeyThatIsTooLongIsRefusedAlone(t *testing.T) {
	f := openAt(t, pathIn(t), Config{})
	long := key("a", strings.Repeat("x", bbolt.MaxKeySize))
	require.ErrorContains(t, f.Save(ctx, long, sample(1)), "at most 32768 are possible")
	r, err := f.Load(ctx, long)
	require.NoError(t, err)
	require.Nil(t, r)
}

// An open store cannot be opened again until its process has ended. Its records are
// kept.
func TestOneProcessHasTheFile(t *testing.T) {
	path := pathIn(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), testHolder+"="+path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill := sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	defer kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "holding <nil>\n", line)

	_, err = Open(path, Config{wait: time.Millisecond})
	require.ErrorIs(t, err, ErrLocked)
	kill()
	f := openAt(t, path, Config{})
	for i := range uint64(10) {
		r, err := f.Load(ctx, key("a", fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, sample(i), r)
	}
	_, err = Open(path, Config{wait: time.Millisecond}) // nor in the same process
	require.ErrorIs(t, err, ErrLocked)
}

// FuzzFile makes the same moves on a file and on a model, which is a map. Each byte is
// one move.
func FuzzFile(f *testing.F) {
	f.Add("a", "b", "c", []byte("save, load, delete, reopen"))
	f.Add("a", "a/b", "", []byte{0, 4, 8, 1, 5, 9, 2, 63, 3, 64, 68, 130, 255})
	f.Fuzz(func(t *testing.T, a, b, c string, moves []byte) {
		if len(a)+len(b)+len(c) > bbolt.MaxKeySize/4 || len(moves) > 500 {
			t.Skip()
		}
		keys := []messages.Key{
			key(a, b), key(b, a), key(a, c), key(a+b, c), key(a, b+c), key(a+"/"+b, c), key(a, b+"/"+c), key("", a+b), key(a, ""),
		}
		path := pathIn(t)
		var store *File
		reopen := func() {
			if store != nil {
				require.NoError(t, store.Close())
			}
			var err error
			store, err = Open(path, Config{})
			require.NoError(t, err)
			store.db.NoSync = true
		}
		reopen()
		defer func() { require.NoError(t, store.Close()) }()
		model := map[messages.Key]*mcpbridge.Record{}
		for i, move := range moves {
			k := keys[int(move/4)%len(keys)]
			switch move % 4 {
			case 0, 1:
				r := sample(uint64(i))
				require.NoError(t, store.Save(ctx, k, r))
				model[k.Normal()] = r
			case 2:
				require.NoError(t, store.Delete(ctx, k))
				delete(model, k.Normal())
			case 3:
				if move > 200 {
					reopen()
				}
			}
			for _, k := range keys {
				r, err := store.Load(ctx, k)
				require.NoError(t, err)
				require.Equal(t, model[k.Normal()], r)
			}
		}
	})
}

// A swap sees the writes before it in its batch, and one that is refused does not fail the others.
func TestSwapsShareABatch(t *testing.T) {
	f := openAt(t, pathIn(t), Config{})
	put(t, f, key("a", "garbage"), []byte(secret))
	var batch []*write
	add := func(scope string, from *uint64, r *mcpbridge.Record) {
		w := &write{key: keyBytes(key("a", scope)), from: from, done: make(chan error, 1)}
		if r != nil {
			var err error
			w.value, err = entry.Encode(r, time.Now())
			require.NoError(t, err)
		}
		batch = append(batch, w)
	}
	version := func(version, generation uint64) *mcpbridge.Record {
		return &mcpbridge.Record{Version: version, Generation: generation}
	}
	add("b", new(uint64(0)), version(1, 1))
	add("b", new(uint64(0)), version(1, 2)) // refused
	add("b", new(uint64(1)), version(2, 3))
	add("garbage", new(uint64(0)), version(1, 4)) // refused
	add("c", nil, version(5, 5))
	add("c", new(uint64(5)), version(6, 6))
	add("d", nil, version(1, 7))
	add("d", nil, nil)
	add("d", new(uint64(1)), version(2, 8)) // refused
	require.NoError(t, f.commit(batch))
	for i, w := range batch {
		switch i {
		case 1, 8:
			require.ErrorIs(t, w.refused, errVersion)
		case 3:
			require.ErrorIs(t, w.refused, ErrGarbage)
		default:
			require.NoError(t, w.refused)
		}
	}
	for scope, want := range map[string]*mcpbridge.Record{"b": version(2, 3), "c": version(6, 6), "d": nil} {
		r, err := f.Load(ctx, key("a", scope))
		require.NoError(t, err)
		require.Equal(t, want, r)
	}
	_, err := f.Load(ctx, key("a", "garbage"))
	require.ErrorIs(t, err, ErrGarbage)
}

// A swap whose transaction fails is an error, also if it would have been refused: that may be because of a write before it.
func TestSwapOfABatchThatFailsIsAnError(t *testing.T) {
	f := openAt(t, pathIn(t), Config{})
	full := errors.New("disk full")
	f.commit = func(batch []*write) error { return errors.Join(f.apply(batch), full) }
	for range 2 {
		swapped, err := f.Swap(ctx, key("a", "b"), 0, &mcpbridge.Record{Version: 1})
		require.ErrorIs(t, err, full)
		require.False(t, swapped)
	}
}
