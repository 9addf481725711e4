package serve

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// authority issues certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	path string // of its own certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, path: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert = &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key = a.issue("authority", a.path, filepath.Join(t.TempDir(), "ca.key"))
	return a
}

// issue writes a certificate for this machine, and its key.
func (a *authority) issue(name, cert, key string) *ecdsa.PrivateKey {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template, signer := &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}}, a.key
	if signer == nil {
		template, signer = a.cert, private
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), signer)
	require.NoError(a.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(a.t, err)
	require.NoError(a.t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(a.t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if a.key == nil {
		a.cert, err = x509.ParseCertificate(der)
		require.NoError(a.t, err)
	}
	return private
}

// pool returns the authority, for those who trust it.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func TestCertificateIsRenewedWhenItsFilesChange(t *testing.T) {
	a, folder := newAuthority(t), t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	var log bytes.Buffer
	_, err := newCertificate(cert, key, zerolog.New(&log))
	require.ErrorContains(t, err, "cert.pem")
	a.issue("first", cert, key)
	c, err := newCertificate(cert, key, zerolog.New(&log))
	require.NoError(t, err)
	name := func() string {
		given, err := c.get(&tls.ClientHelloInfo{})
		require.NoError(t, err)
		return given.Leaf.Subject.CommonName
	}
	require.Equal(t, "first", name())
	require.Empty(t, log.String())

	later := time.Now()
	replace := func(write func()) {
		write()
		later = later.Add(time.Second) // clocks of file systems are coarse
		require.NoError(t, os.Chtimes(cert, later, later))
		require.NoError(t, os.Chtimes(key, later, later))
	}
	replace(func() { a.issue("second", cert, key) })
	require.Equal(t, "second", name())
	require.Contains(t, log.String(), "the certificate was renewed")

	// Half of a renewal, or its failure, costs nothing, and is said once.
	log.Reset()
	replace(func() { a.issue("third", cert, filepath.Join(folder, "other.key")) })
	require.Equal(t, "second", name())
	require.Equal(t, "second", name())
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("was not renewed")), log.String())
	require.NoError(t, os.Remove(cert))
	require.Equal(t, "second", name())
	replace(func() { a.issue("fourth", cert, key) })
	require.Equal(t, "fourth", name())
}
