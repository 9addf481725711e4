package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/supervisor"
)

func TestHostsOfAListFindEachOtherAndSpeakTLS(t *testing.T) {
	s, dir := newCounters(t), t.TempDir()
	ca := newAuthority(t, dir, "ca")
	hosts := []string{free(t), free(t), free(t)}
	var cfgs []cluster.Config
	for i, host := range hosts {
		cfgs = append(cfgs, cluster.Config{
			Member: fmt.Sprint("m", i), Listen: host, Hosts: hosts, Directory: dir, TLS: ca.issue(t, fmt.Sprint("m", i)),
		})
	}
	members := s.startAll(t, cfgs...)
	for i := range 20 {
		for _, m := range members {
			call(t, m, fmt.Sprint(i))
		}
	}

	// One without a certificate changes nothing.
	conn, err := grpc.NewClient(members[0].Members()[0].Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, codes.Unavailable, status.Code(conn.Invoke(t.Context(), "/no/method", &emptypb.Empty{}, &emptypb.Empty{})))
	for i := range 20 {
		call(t, members[i%3], fmt.Sprint(i))
	}
}

// The error of a certificate that other members would refuse is that of the member that has it.
func TestCertificateMustBeValidForTheMember(t *testing.T) {
	dir := t.TempDir()
	ca, other := newAuthority(t, dir, "ca"), newAuthority(t, dir, "other")
	files := ca.issue(t, "m")
	servers := supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}}
	for want, cfg := range map[string]cluster.Config{
		"tls.certFile: x509: certificate is not valid for":      {Advertise: "localhost:1", TLS: files},
		"tls.certFile: x509: certificate signed by unknown":     {TLS: &cluster.TLS{CertFile: files.CertFile, KeyFile: files.KeyFile, CAFile: other.file}},
		"tls.certFile: x509: certificate specifies an incompat": {TLS: ca.issue(t, "server", x509.ExtKeyUsageServerAuth)},
	} {
		cfg.Supervisor, cfg.InProcess = servers, cluster.NewInProcess()
		_, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.ErrorContains(t, err, want)
	}
}

func TestMemberWithoutTLSIsRefusedOnOtherInterfaces(t *testing.T) {
	for want, cfg := range map[string]cluster.Config{
		`listen: "192.0.2.1:8090" is reached from other machines`: {Listen: "192.0.2.1:8090"},
		`listen: ":8090" is reached from other machines`:          {Listen: ":8090", Advertise: "127.0.0.1:8090"},
		`listen: "0.0.0.0:8090" is reached from other machines`:   {Listen: "0.0.0.0:8090", Advertise: "127.0.0.1:8090"},
		`advertise: "192.0.2.1:1" is reached from other machines`: {Advertise: "192.0.2.1:1"},
	} {
		cfg.InProcess = cluster.NewInProcess()
		cfg.Supervisor.Servers = []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}
		_, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "Config.TLS")
	}
}

// The members get certificates of a new authority while they run. A member that has only these can join them.
func TestCertificatesAreReadAgainWhenTheyChange(t *testing.T) {
	s := newCounters(t)
	hub, dir := cluster.NewInProcess(), t.TempDir()
	ca := newAuthority(t, dir, "ca")
	start := func(name string) *cluster.Member {
		cfg := inProcess(hub, name)
		cfg.Supervisor.Servers, cfg.TLS = []supervisor.Server{{Name: "counter", URL: s.url}}, ca.issue(t, name)
		m, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { m.Stop(context.Background()) })
		return m
	}
	first := start("a")
	ca = newAuthority(t, dir, "ca") // in the same files
	ca.issue(t, "a")
	second := start("b")
	require.Eventually(t, func() bool {
		return len(heard(first)) == 2 && len(heard(second)) == 2
	}, 20*time.Second, 10*time.Millisecond)
	on := map[string]bool{}
	for i := range 20 {
		res, err := second.Client().CallTool(t.Context(), "counter", fmt.Sprint("scope", i), &mcp.CallToolParams{Name: "add"})
		require.NoError(t, err)
		on[res.Supervisor] = true
	}
	require.Len(t, on, 2)
}

// While the new files are not valid, the last ones that were are used, and the log says so.
func TestCertificatesThatAreNotValidAreNotUsed(t *testing.T) {
	s := newCounters(t)
	hub, dir, lines := cluster.NewInProcess(), t.TempDir(), make(logLines, 1000)
	ca := newAuthority(t, dir, "ca")
	start := func(name string, logger zerolog.Logger) *cluster.Member {
		cfg := inProcess(hub, name)
		cfg.Supervisor = supervisor.Config{Servers: []supervisor.Server{{Name: "counter", URL: s.url}}, Logger: logger}
		cfg.TLS = ca.issue(t, name)
		m, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { m.Stop(context.Background()) })
		return m
	}
	first := start("a", zerolog.New(lines))
	write(t, filepath.Join(dir, "a.pem"), "CERTIFICATE", []byte("half of one"))
	second := start("b", zerolog.Nop())
	require.Eventually(t, func() bool {
		return len(heard(first)) == 2 && len(heard(second)) == 2
	}, 20*time.Second, 10*time.Millisecond)
	for {
		select {
		case line := <-lines:
			if strings.Contains(line, "are not valid: the previous ones are still used") {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was logged")
		}
	}
}

// heard returns the names of the members that a member has heard.
func heard(m *cluster.Member) (names []string) {
	for _, one := range m.Members() {
		if one.Answered && one.Name != one.Address {
			names = append(names, one.Name)
		}
	}
	return names
}

// authority signs certificates.
type authority struct {
	dir, file string
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir, name string) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a := &authority{dir, filepath.Join(dir, name+".pem"), cert, key}
	write(t, a.file, "CERTIFICATE", der)
	return a
}

// issue returns the files of a member. Without usages, its certificate has those that members need.
func (a *authority) issue(t *testing.T, name string, usages ...x509.ExtKeyUsage) *cluster.TLS {
	if usages == nil {
		usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	files := &cluster.TLS{CertFile: filepath.Join(a.dir, name+".pem"), KeyFile: filepath.Join(a.dir, name+".key"), CAFile: a.file}
	write(t, files.CertFile, "CERTIFICATE", der)
	write(t, files.KeyFile, "EC PRIVATE KEY", encoded)
	return files
}

func write(t *testing.T, file, kind string, der []byte) {
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
