// Command sent-twice shows that net/http repeats a POST over HTTP/2 by itself, although the server
// has read all of it and may have run the tool. The server is written here, because that of net/http
// resets no stream with PROTOCOL_ERROR, as proxies do.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Frames of HTTP/2 (RFC 9113).
const (
	frameData, frameReset, frameSettings = 0, 3, 4
	flagEndStream, flagAck               = 1, 1
	protocolError                        = 1
)

// enough is how many requests are a proof. There is no end to them otherwise.
const enough = 3

var received atomic.Int32

// serve reads requests, and resets the stream of each.
func serve(conn net.Conn) {
	write := func(kind, flags byte, stream uint32, payload []byte) {
		head := binary.BigEndian.AppendUint32([]byte{0, 0, byte(len(payload)), kind, flags}, stream)
		_, _ = conn.Write(append(head, payload...))
	}
	preface := make([]byte, 24)
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	write(frameSettings, 0, 0, nil)
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32([]byte{0, head[0], head[1], head[2]}))
		if _, err := io.ReadFull(conn, payload); err != nil {
			return
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case kind == frameSettings && flags&flagAck == 0:
			write(frameSettings, flagAck, 0, nil)
		case kind == frameData && flags&flagEndStream != 0:
			fmt.Printf("the server read: %.45s…\n", payload)
			if received.Add(1) == enough {
				_ = conn.Close()
				return
			}
			write(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, protocolError))
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	_, err = client.Connect(context.Background(), &mcp.StreamableClientTransport{
		Endpoint: "http://" + listener.Addr().String(), HTTPClient: &http.Client{Transport: transport},
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	fmt.Println("the client was told:", strings.ReplaceAll(fmt.Sprint(err), listener.Addr().String(), "server"))
	if received.Load() > 1 {
		fmt.Println("still so: net/http sent one request several times")
		return
	}
	fmt.Println("mended: one request was sent once")
}
