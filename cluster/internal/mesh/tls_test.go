package mesh

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key}
}

// issue returns the credentials of a member whose certificate is for a host.
func (a *authority) issue(t *testing.T, host string) credentials.TransportCredentials {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, RootCAs: pool,
	})
}

// over listens on loopback.
func over(t *testing.T, id string, listener net.Listener, creds credentials.TransportCredentials) *member {
	m := &member{served: make(chan error, 1)}
	m.Mesh = New(Config{
		Cluster: "test", Version: 1, Self: link.Address{ID: id, Host: listener.Addr().String()}, Logger: zerolog.New(&m.log), Credentials: creds,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
		Decode:   func(_ *Link, msg link.Message) any { return msg },
		Received: func(_ *Link, msg any) { m.mu.Lock(); m.got = append(m.got, msg.(link.Message)); m.mu.Unlock() },
		Changed:  func(*Link, link.State) {},
	})
	go func() { m.served <- m.Serve(listener) }()
	t.Cleanup(m.end)
	return m
}

// The stranger says all that a member says, and listens at its address, but its certificate is for another host.
func TestStrangerWithACertificateOfTheSameAuthorityIsRefused(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return l
	}
	ca, la, lb := newAuthority(t), listen(), listen()
	b := over(t, "b", lb, ca.issue(t, "127.0.0.1"))
	ba := b.Link(link.Address{ID: "a", Host: la.Addr().String()})
	b.Link(link.Address{Host: la.Addr().String()})
	stranger := over(t, "a", la, ca.issue(t, "other.example"))
	send(t, stranger.Link(link.Address{ID: "b", Host: lb.Addr().String()}), 1)
	stranger.Link(link.Address{Host: lb.Addr().String()}).Cast(link.Message{ID: 4})
	require.Eventually(t, func() bool { return len(stranger.refusals()) > 1 }, 10*time.Second, time.Millisecond)
	for _, text := range stranger.refusals() {
		require.Equal(t, errStranger.Error(), text)
	}
	require.Empty(t, b.ids())
	send(t, ba, 3)
	_, err := ba.conn.NewStream(t.Context(), &streamOf, Method)
	require.ErrorContains(t, err, "cannot validate certificate for 127.0.0.1")
	require.Empty(t, stranger.ids())

	lc := listen()
	b.Link(link.Address{ID: "c", Host: lc.Addr().String()})
	c := over(t, "c", lc, ca.issue(t, "127.0.0.1"))
	send(t, c.Link(link.Address{ID: "b", Host: lb.Addr().String()}), 2)
	require.Eventually(t, func() bool { return len(b.ids()) > 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, []uint64{2}, b.ids())
}
