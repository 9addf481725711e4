// Command etcd runs a server of etcd until it is interrupted or its standard input ends.
// It prints the address for clients when the server is ready.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpactor/mcpactor/tests/cluster/etcdserver"
)

func main() {
	var cfg etcdserver.Config
	flag.StringVar(&cfg.Dir, "dir", "", "the data directory")
	flag.StringVar(&cfg.Client, "client", "", "host:port for clients, by default a free port")
	flag.StringVar(&cfg.Peer, "peer", "", "host:port for other servers, by default a free port")
	flag.Parse()
	if err := run(cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(cfg etcdserver.Config) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	go func() { // the process that started this one has ended, or closed the pipe
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	server, err := etcdserver.New(cfg)
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Stop()
	fmt.Fprintln(os.Stdout, server.Endpoint())
	<-ctx.Done()
	return nil
}
