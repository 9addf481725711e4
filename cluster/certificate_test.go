package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// selfSigned writes the files of a certificate that is its own authority, and is valid for an hour.
func selfSigned(t *testing.T, dir string) *TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	files := &TLS{CertFile: filepath.Join(dir, "m.pem"), KeyFile: filepath.Join(dir, "m.key"), CAFile: filepath.Join(dir, "m.pem")}
	require.NoError(t, os.WriteFile(files.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(files.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), 0o600))
	return files
}

// A certificate expires while the member runs, which looks at it for each attempt to connect.
func TestCertificateThatIsNotValidIsLoggedWhenTheReasonChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, dir := new(logged), t.TempDir()
		files := selfSigned(t, dir)
		creds, err := (&Config{TLS: files, Advertise: "127.0.0.1:1"}).credentials(zerolog.New(log))
		require.NoError(t, err)
		tries := func() (lines int) {
			for range 100 {
				creds.(*fileCredentials).current()
				time.Sleep(time.Second) // synctest
			}
			return strings.Count(log.text.String(), `"the new files of Config.TLS are not valid`)
		}
		require.Zero(t, tries())
		time.Sleep(time.Hour) // synctest
		require.Equal(t, 1, tries())
		require.Contains(t, log.text.String(), "certificate has expired")
		require.NoError(t, os.Remove(files.KeyFile))
		require.Equal(t, 2, tries())
		selfSigned(t, dir)
		require.Equal(t, 2, tries())
		time.Sleep(time.Hour) // synctest
		require.Equal(t, 3, tries())
	})
}
