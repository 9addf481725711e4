package login

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
)

// record is what is kept of a login. It is read-only once it is made.
type record struct {
	Server   string         // the URL
	Resource string         // for which the tokens are
	Client   *oauth2.Config // this program, as the authorization server knows it
	Given    bool           // the user has given Client: the program has not registered itself
	Token    *oauth2.Token  // nil after the authorization server has refused to refresh it
}

// file is the file of the login at one server, which processes share. Readers see the whole record before or after.
type file struct{ path string }

// fileOf returns the file of the server at a URL, in the configuration folder of the user.
func fileOf(server string) (file, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return file{}, err
	}
	return file{filepath.Join(folder, "mcpactor", "logins", fmt.Sprintf("%x", sha256.Sum256([]byte(server))))}, nil
}

// read returns the record, or nil if there is none.
func (f file) read() (*record, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.Client == nil {
		err = errors.New("it has no client")
	}
	if err != nil {
		return nil, fmt.Errorf("the login that is kept cannot be read: %w", err)
	}
	return &r, nil
}

// token returns the token that is kept, or nil.
func (f file) token() (*oauth2.Token, error) {
	r, err := f.read()
	if err != nil || r == nil {
		return nil, err
	}
	return r.Token, nil
}

// write keeps a record. Only its user can read the file.
func (f file) write(r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(f.path), "new-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err == nil {
		err = replace(temporary.Name(), f.path)
	}
	if err != nil {
		os.Remove(temporary.Name()) //nolint:errcheck // the error is that of the record
	}
	return err
}

// replace renames a file. Windows replaces none that is being read.
func replace(from, to string) error {
	for try := 0; ; try++ {
		err := os.Rename(from, to)
		if err == nil || runtime.GOOS != "windows" || try == 50 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// remove forgets the login, and reports whether there was one.
func (f file) remove() (found bool, err error) {
	err = os.Remove(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// The things that one process at a time does with a login. Each has a lock of its own: a login takes minutes.
const (
	refreshing = ".refresh.lock"
	loggingIn  = ".login.lock"
)

// lockPatience is how long to wait for another process that refreshes. It takes less.
const lockPatience = time.Minute

// lock waits for a lock until ctx ends, and reports whether it had to wait. The lock ends with the process.
func (f file) lock(ctx context.Context, what string) (unlock func(), waited bool, err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return nil, false, err
	}
	l := flock.New(f.path+what, flock.SetPermissions(0o600))
	locked, err := l.TryLock()
	if waited = !locked; waited && err == nil {
		_, err = l.TryLockContext(ctx, 20*time.Millisecond)
	}
	if err != nil {
		return nil, waited, fmt.Errorf("the lock of the login: %w", err)
	}
	return func() { l.Unlock() }, waited, nil //nolint:errcheck // it ends with the process
}

// web speaks to authorization servers. It sends tokens and codes to no other address than it was told.
var web = &http.Client{
	Timeout: 30 * time.Second,
	CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet {
			return http.ErrUseLastResponse
		}
		return oauthresource.CheckRedirect(req, via)
	},
}

// refresh returns the record with a new token.
func (r *record) refresh(ctx context.Context) (*record, error) {
	c := &oauth2.Config{ClientID: r.Client.ClientID, ClientSecret: r.Client.ClientSecret, Endpoint: r.Client.Endpoint}
	// The token source of oauth2 names no resource, as MCP demands.
	token, err := c.Exchange(context.WithValue(ctx, oauth2.HTTPClient, web), "",
		oauth2.SetAuthURLParam("grant_type", "refresh_token"),
		oauth2.SetAuthURLParam("refresh_token", r.Token.RefreshToken),
		oauth2.SetAuthURLParam("resource", r.Resource))
	if err != nil {
		return nil, err
	}
	renewed := *r
	renewed.Token = token
	return &renewed, nil
}

// hasEnded reports whether an authorization server has refused for good to refresh a token.
func hasEnded(err error) bool {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	return ok && slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, answer.ErrorCode)
}
