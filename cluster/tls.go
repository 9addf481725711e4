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
	// CertFile and KeyFile are the certificate of this member and its key. The certificate needs the
	// host of Config.Advertise as a subject alternative name, and the extended key usages
	// serverAuth and clientAuth.
	CertFile, KeyFile string
	// CAFile has the authorities that sign the certificates of members, and of nothing else:
	// whoever has such a certificate can be a member.
	CAFile string
}

// load returns the configuration of both sides of a connection. The certificate must be valid for
// host: nobody else would say that it is not.
func (t *TLS) load(host string) (server, client *tls.Config, err error) {
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
	server = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	client = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: pool}
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
