package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS has the files for mutual TLS between members, in PEM. They are read each time the member
// joins.
type TLS struct {
	// CertFile and KeyFile are the certificate of this member and its key. The certificate must
	// be valid for the host of the address at which others reach the member, as a server and as a
	// client.
	CertFile, KeyFile string
	// CAFile has the authorities that sign the certificates of members, and of nothing else:
	// whoever has such a certificate can be a member.
	CAFile string
}

// load returns the configuration of both sides of a connection.
func (t *TLS) load() (server, client *tls.Config, err error) {
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
	server = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	client = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: pool}
	return server, client, nil
}
