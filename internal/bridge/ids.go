package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdkjson "github.com/segmentio/encoding/json"
)

const methodCancelled = "notifications/cancelled"

// callHead is how the SDK begins each call: its id comes next.
const callHead = `{"jsonrpc":"2.0","id":`

const (
	// idsFrom is the least number that a request has on the wire. It has more digits than
	// any number of the SDK, which takes its place in an answer.
	idsFrom = 1 << 40
	// idsRange is a power of 2. JavaScript has all integers up to 2^53.
	idsRange = 1 << 52
	// idsStep is the golden section of idsRange: however many connections there have
	// been, the numbers of any two of them are about as far apart as they can be.
	idsStep = 0x9E3779B97F4A7
)

// idsNext is where the next connection of this process counts from.
var idsNext atomic.Uint64

func init() { idsNext.Store(rand.Uint64()) }

// ids gives the requests of one connection numbers that no other connection has. The
// SDK counts the requests of each connection from 1. Some servers send an answer to all
// their sessions, and a server may still answer what the connection before has asked in
// the session that this one is attached to: by its number, such an answer would be taken
// for another. So on the wire each connection counts from a number of its own, and an
// answer with any other number is kept from the SDK. Requests of the server, and our
// answers to them, have the server's ids.
//
// The connections of this process are at least 10^9 numbers apart until there have been a
// million of them, and those of another process are unlikely to meet them. Ids are
// numbers since some servers take no text.
type ids struct {
	before int64          // the number before the first
	asked  atomic.Int64   // the highest number of the SDK so far
	strays *atomic.Uint64 // counts the answers to other connections
}

func newIDs(strays *atomic.Uint64) *ids {
	return &ids{before: idsFrom + int64(idsNext.Add(idsStep)%idsRange), strays: strays}
}

// onWire returns the number on the wire for one of the SDK.
func (i *ids) onWire(number int64) int64 {
	for asked := i.asked.Load(); number > asked && !i.asked.CompareAndSwap(asked, number); {
		asked = i.asked.Load()
	}
	return i.before + number
}

// own returns the number of the SDK for one on the wire. It is false for one that this
// connection has not sent.
func (i *ids) own(onWire int64) (number int64, ok bool) {
	number = onWire - i.before
	return number, number > 0 && number <= i.asked.Load()
}

// renumber returns the message that a request of the SDK carries, with the id of the
// SDK, and the request with the id of the connection.
func (i *ids) renumber(req *http.Request) (rpcEnvelope, *http.Request) {
	begin := make([]byte, 128)
	n, _ := io.ReadFull(req.Body, begin) // it is in memory
	begin = begin[:n]
	if call, ok := scan(begin); ok {
		number, err := strconv.ParseInt(string(call.ID), 10, 64)
		if err == nil {
			onWire := make([]byte, 0, len(begin)+len("4503599627370496"))
			onWire = strconv.AppendInt(append(onWire, callHead...), i.onWire(number), 10)
			onWire = append(onWire, begin[len(callHead)+len(call.ID):]...)
			return call, withHead(req, onWire, n)
		}
	}
	rest, _ := io.ReadAll(req.Body)
	body := append(begin, rest...)
	size, msg := len(body), parse(body)
	if msg.Method == methodCancelled {
		body = i.cancelled(body)
	}
	return msg, withHead(req, body, size)
}

// cancelled returns a notifications/cancelled of the SDK with the id of the connection.
func (i *ids) cancelled(body []byte) []byte {
	var msg struct {
		Version string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if json.Unmarshal(body, &msg) != nil {
		return body
	}
	msg.Params = i.cancelledParams(msg.Params)
	body, _ = json.Marshal(msg) // it was JSON before
	return body
}

func (i *ids) cancelledParams(raw json.RawMessage) json.RawMessage {
	var params map[string]json.RawMessage
	if json.Unmarshal(raw, &params) != nil {
		return raw
	}
	number, err := strconv.ParseInt(string(params["requestId"]), 10, 64)
	if err != nil {
		return raw
	}
	params["requestId"] = strconv.AppendInt(nil, i.onWire(number), 10)
	raw, _ = json.Marshal(params) // it was JSON before
	return raw
}

// spliced is a body whose beginning was replaced.
type spliced struct {
	begin []byte
	io.ReadCloser
}

// Read reads the beginning, then the rest.
func (s *spliced) Read(p []byte) (int, error) {
	if len(s.begin) == 0 {
		return s.ReadCloser.Read(p)
	}
	n := copy(p, s.begin)
	s.begin = s.begin[n:]
	return n, nil
}

// withHead returns a request with other bytes in place of the first ones of its body,
// which have been read.
func withHead(req *http.Request, begin []byte, instead int) *http.Request {
	r := *req
	r.ContentLength += int64(len(begin) - instead)
	r.Body = &spliced{begin, req.Body}
	r.GetBody = func() (io.ReadCloser, error) {
		body, err := req.GetBody()
		if err == nil {
			_, err = io.CopyN(io.Discard, body, int64(instead))
		}
		return &spliced{begin, body}, err
	}
	return &r
}

// origin says whose an answer is, by its id.
type origin uint8

const (
	noAnswer    origin = iota // it is a request or a notification
	noMessage                 // it is nothing that the SDK can read
	ownAnswer                 // to a request of this connection
	unnamed                   // an error without an id, as servers make them that have not read the request
	strayAnswer               // to a request of another connection
)

// answerHead is what has to be known of an answer.
type answerHead struct {
	Version string             `json:"jsonrpc"`
	ID      rawID              `json:"id"`
	Method  sdkjson.RawMessage `json:"method"`
	Result  sdkjson.RawMessage `json:"result"`
	Error   sdkjson.RawMessage `json:"error"`
}

// rawID is the JSON of an id, as a part of what is decoded. If the name stands there
// more than once it is the last, and all have to be what the SDK takes.
type rawID []byte

// UnmarshalJSON keeps raw.
func (id *rawID) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9') {
		if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
			return err
		}
	}
	*id = raw
	return nil
}

// restore puts the number of the SDK in the place of the id of an answer, in place. The
// data is decoded by the library that the SDK decodes with, without copying any of it.
func (i *ids) restore(data []byte) (answerHead, origin) {
	var msg answerHead
	rest, err := sdkjson.Parse(data, &msg, sdkjson.ZeroCopy|sdkjson.DontMatchCaseInsensitiveStructFields)
	if string(msg.Error) == "null" {
		msg.Error = nil
	}
	switch {
	case err != nil || len(bytes.TrimSpace(rest)) > 0 || msg.Version != "2.0":
		return msg, noMessage
	case msg.Method != nil:
		return msg, noAnswer
	}
	if onWire, ok := integer(msg.ID); ok {
		number, ok := i.own(onWire)
		var digits [20]byte
		text := strconv.AppendInt(digits[:0], number, 10)
		if ok && len(text) <= len(msg.ID) {
			blank(msg.ID[copy(msg.ID, text):])
			return msg, ownAnswer
		}
	}
	switch string(msg.ID) {
	case "", "null", `""`, `"server-error"`:
		if msg.Error != nil {
			return msg, unnamed
		}
		return msg, noMessage
	}
	i.strays.Add(1)
	return msg, strayAnswer
}

// maxPlain bounds the objects and arrays of an answer that is plain. The SDK refuses to
// decode what is nested deeper than that.
const maxPlain = 1000

// isPlain reports whether an answer is a result that the SDK is sure to take. Most are.
func isPlain(data []byte, msg answerHead) bool {
	return msg.Result != nil && msg.Error == nil &&
		bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= maxPlain
}

func blank(data []byte) {
	for i := range data {
		data[i] = ' '
	}
}

// integer returns the integer that JSON is.
func integer(raw []byte) (int64, bool) {
	number, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		return number, true
	}
	value, err := strconv.ParseFloat(string(raw), 64) // 4.5e15, as some write it
	return int64(value), err == nil && value > 0 && value < 2*idsRange && float64(int64(value)) == value
}

// restoreEvent does what restore does with the data of an event, in place where that
// can be. One that answers another connection loses its data, and keeps its id: the
// stream is resumed after it. An error without an id gets that of the call which the
// stream answers, where there is one.
func (i *ids) restoreEvent(event []byte, call json.RawMessage) (restored []byte, what content) {
	data, single := singleData(event)
	if !single {
		data = dataOf(event)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return event, nothing
	}
	msg, from := i.restore(data)
	what = aResult
	if msg.Result == nil || msg.Error != nil {
		what = anError
	}
	switch {
	case from == noAnswer:
		return event, nothing
	case from == noMessage && hasID(call):
		return event, nonsense
	case from == noMessage:
		return event, nothing
	case from == ownAnswer && single:
		return event, what
	case from == ownAnswer:
		return withData(event, data), what
	case from == unnamed && hasID(call):
		return withData(event, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, call, msg.Error)), anError
	}
	return withData(event, nil), nothing
}

// content is what an event has for the call that its stream answers.
type content uint8

const (
	nothing content = iota
	aResult
	anError  // an answer without a result
	nonsense // no message
)

// singleData returns the data of an event if it stands in one line.
func singleData(event []byte) (data []byte, ok bool) {
	for line := range bytes.Lines(event) {
		rest, isData := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case !isData:
		case data != nil:
			return nil, false
		default:
			data = rest
		}
	}
	return data, data != nil
}

// withData returns an event with other data; nil is none.
func withData(event, data []byte) []byte {
	var with []byte
	if data != nil {
		with = fmt.Appendf(with, "data: %s\n", data)
	}
	for line := range bytes.Lines(event) {
		if field, _ := fieldOf(line); field != "data" {
			with = append(with, line...)
		}
	}
	return with
}

// onWireID returns the id on the wire for one of the SDK's.
func (i *ids) onWireID(id jsonrpc.ID) jsonrpc.ID {
	if number, ok := id.Raw().(int64); ok {
		id, _ = jsonrpc.MakeID(float64(i.onWire(number)))
	}
	return id
}

// ownID returns the id of the SDK for one on the wire.
func (i *ids) ownID(id jsonrpc.ID) (own jsonrpc.ID, ok bool) {
	onWire, ok := id.Raw().(int64)
	if ok {
		var number int64
		if number, ok = i.own(onWire); ok {
			own, _ = jsonrpc.MakeID(float64(number))
			return own, true
		}
	}
	i.strays.Add(1)
	return id, false
}
