package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/credentials"
)

// TLS has the files for mutual TLS between members, in PEM. They are read for each connection, so that they can be
// replaced. While they are not valid, the last valid ones are used, and an error is logged whenever the reason changes.
type TLS struct {
	// CertFile and KeyFile are the certificate of this member and its key. The certificate needs the
	// host of Config.Advertise as a subject alternative name, and the extended key usages
	// serverAuth and clientAuth.
	CertFile, KeyFile string
	// CAFile has the authorities that sign the certificates of members. Others with such a certificate are
	// refused, unless it is for the host of a member.
	CAFile string
}

// load returns the configuration of both sides of a connection. The certificate must be valid for
// host: nobody else would say that it is not.
func (t *TLS) load(host string) (server, client credentials.TransportCredentials, err error) {
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("tls.certFile, tls.keyFile: %w", err)
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, nil, fmt.Errorf("tls.caFile: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, errors.New("tls.caFile: has no certificate in PEM")
	}
	if err := verify(cert, pool, host); err != nil {
		return nil, nil, fmt.Errorf("tls.certFile: %w", err)
	}
	server = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	client = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &cert, nil // also if the other side does not know its authority: it then says so
	}})
	return server, client, nil
}

// verify returns an error if other members would refuse a certificate.
func verify(cert tls.Certificate, authorities *x509.CertPool, host string) error {
	intermediates := x509.NewCertPool()
	for _, der := range cert.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(c)
		}
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		options := x509.VerifyOptions{DNSName: host, Roots: authorities, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := cert.Leaf.Verify(options); err != nil {
			return err
		}
	}
	return nil
}

// credentials returns what secures the connections, or nil without TLS.
func (c *Config) credentials(logger zerolog.Logger) (credentials.TransportCredentials, error) {
	if c.TLS == nil {
		return nil, nil
	}
	host, _, _ := net.SplitHostPort(c.Advertise)
	creds := &fileCredentials{files: c.TLS, host: host, logger: logger}
	var err error
	if creds.server, creds.client, err = c.TLS.load(host); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	creds.TransportCredentials = creds.client
	return creds, nil
}

// checkLocal returns an error if a member without TLS would be reached from other machines.
func (c *Config) checkLocal(ctx context.Context) error {
	if c.TLS != nil {
		return nil
	}
	for _, at := range [][2]string{{"listen", c.Listen}, {"advertise", c.Advertise}} {
		field, address := at[0], at[1]
		host, _, _ := net.SplitHostPort(address)
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", cmp.Or(host, "::")) // empty: all interfaces
		if err != nil {
			return fmt.Errorf("cluster: %s: %w", field, err)
		}
		if slices.ContainsFunc(ips, func(ip netip.Addr) bool { return !ip.Unmap().IsLoopback() }) {
			return fmt.Errorf("cluster: %s: %q is reached from other machines, which needs tls: set Config.TLS, or use 127.0.0.1", field, address)
		}
	}
	return nil
}

// fileCredentials secures each connection with what the files have when it is made.
type fileCredentials struct {
	credentials.TransportCredentials // of the first files: what they say of the protocol does not change

	files  *TLS
	host   string
	logger zerolog.Logger

	mu             sync.Mutex
	server, client credentials.TransportCredentials // of the last valid files
	problem        string                           // why the files are not valid
}

// current returns the credentials for a new connection.
func (f *fileCredentials) current() (server, client credentials.TransportCredentials) {
	f.mu.Lock()
	defer f.mu.Unlock()
	problem := ""
	if server, client, err := f.files.load(f.host); err == nil {
		f.server, f.client = server, client
	} else if problem = reasonOf(err); problem != f.problem {
		f.logger.Error().Err(err).Msg("the new files of Config.TLS are not valid: the previous ones are still used")
	}
	f.problem = problem
	return f.server, f.client
}

// reasonOf returns the text of an error without the details of a certificate that is not valid: that of one that has expired has
// the current time.
func reasonOf(err error) string {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) {
		invalid.Detail = ""
		return invalid.Error()
	}
	return err.Error()
}

// ClientHandshake secures a connection to another member.
func (f *fileCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	_, client := f.current()
	conn, info, err := client.ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	return refusable{conn}, info, nil
}

// refusable is a connection to a member that may refuse the certificate of this one after the handshake. A write that fails then
// has the reason of the member as its error.
type refusable struct{ net.Conn }

func (r refusable) Write(data []byte) (int, error) {
	n, err := r.Conn.Write(data)
	if err != nil {
		var told *net.OpError
		if _, why := r.Read(make([]byte, 1)); errors.As(why, &told) && told.Op == "remote error" {
			err = why
		}
	}
	return n, err
}

// ServerHandshake secures a connection of another member.
func (f *fileCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	server, _ := f.current()
	return server.ServerHandshake(conn)
}

// Clone returns the credentials, which have no state of a connection.
func (f *fileCredentials) Clone() credentials.TransportCredentials { return f }
