package serve

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// certificate is the certificate of a server with its key. The files are read again when one of them has changed, so that a certificate
// can be renewed while clients are served.
type certificate struct {
	cert, key string // files
	log       zerolog.Logger

	mu      sync.Mutex
	version [2]fileVersion // of the files that were read last
	last    *tls.Certificate
}

// fileVersion changes when a file does.
type fileVersion struct {
	modified time.Time
	size     int64
}

func versionOf(file string) (v fileVersion) {
	if info, err := os.Stat(file); err == nil {
		v = fileVersion{info.ModTime(), info.Size()}
	}
	return v
}

// newCertificate returns the certificate in two files.
func newCertificate(cert, key string, log zerolog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	_, err := c.refresh()
	return c, err
}

// get returns the certificate for a connection.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch changed, err := c.refresh(); {
	case err != nil:
		c.log.Warn().Err(err).Msg("the certificate was not renewed: its files cannot be used")
	case changed:
		c.log.Info().Msg("the certificate was renewed")
	}
	return c.last, nil
}

// refresh reads the files if they have changed. If they cannot be used, the last certificate remains. The caller holds the mutex, or has
// the certificate alone.
func (c *certificate) refresh() (changed bool, err error) {
	version := [2]fileVersion{versionOf(c.cert), versionOf(c.key)}
	if version == c.version && c.last != nil {
		return false, nil
	}
	c.version = version
	read, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.last = &read
	}
	return true, err
}
