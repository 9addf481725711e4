// Command show shows three processes that share their sessions, while one is killed, one is
// paused and one leaves. At the end it checks that every guarantee holds, and fails if one does
// not.
//
//	go -C cluster run ./show
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if config := os.Getenv(memberVar); config != "" { // the show starts itself as the other members
		if err := runMember(config, os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "show: a member:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.IntVar(&o.agents, "agents", 24, "number of agents, from 3 to 1000")
	flag.StringVar(&o.listen, "listen", "", "serve a page that shows the members and their sessions live, at an address such as 127.0.0.1:8080,\n"+
		"and repeat the show until Ctrl-C stops it; the page has no authentication, and can close sessions")
	flag.Parse()
	if flag.NArg() > 0 || o.agents < 3 || o.agents > 1000 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := o.run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "show:", err)
		cancel()
		os.Exit(1)
	}
}
