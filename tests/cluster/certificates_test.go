//go:build linux

package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pemFiles are the files of an authority, and of a certificate that all members share.
type pemFiles struct{ certificate, key, authority string }

// newPEMFiles makes an authority, and a certificate for some addresses.
func newPEMFiles(t *testing.T, dir string, addresses ...net.IP) *pemFiles {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		return k
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	from, until := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	authority, authorityKey := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "members"}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, key()
	member, memberKey := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "member"}, NotBefore: from, NotAfter: until,
		IPAddresses: addresses, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, key()
	own, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	require.NoError(t, err)
	signed, err := x509.CreateCertificate(rand.Reader, member, authority, memberKey.Public(), authorityKey)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(memberKey)
	require.NoError(t, err)
	return &pemFiles{
		certificate: write("member.pem", "CERTIFICATE", signed),
		key:         write("member.key", "EC PRIVATE KEY", private),
		authority:   write("rootCA.pem", "CERTIFICATE", own),
	}
}
