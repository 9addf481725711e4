package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// Environment variables of the server "discovered".
const (
	discoverHow   = "DISCOVER_HOW"   // what it does at server/discover
	discoverLog   = "DISCOVER_LOG"   // the file with a line for each start and each request
	discoverStart = "DISCOVER_START" // how long it takes to start
	discoverReads = "DISCOVER_READS" // if set, it reads its input before it has started, as a wrapper does
)

// discoverWays are what servers do at server/discover. id stands for that of the request.
var discoverWays = map[string]func(id string){
	"exit with 0":       func(string) { os.Exit(0) },
	"exit with 1":       func(string) { fmt.Fprintln(os.Stderr, "expected initialize"); os.Exit(1) },
	"an error and exit": func(id string) { say(id, `"error":{"code":-32600,"message":"initialize first"}`); os.Exit(1) },
	"text and exit":     func(string) { printLine("Traceback (most recent call last):"); os.Exit(1) },
	"silence":           func(string) {},
	"text":              func(string) { printLine("Traceback (most recent call last):") },
	"half a message":    func(id string) { printLine(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32`) },
	"no outcome":        func(id string) { printLine(`{"jsonrpc":"2.0","id":` + id + `}`) },
	"an error":          func(id string) { say(id, `"error":{"code":-32601,"message":"no such method"}`) },
	"null":              func(id string) { say(id, `"result":null`) },
	"a number":          func(id string) { say(id, `"result":5`) },
	"nothing":           func(id string) { say(id, `"result":{}`) },
	"no version":        func(id string) { say(id, `"result":{"supportedVersions":[],"capabilities":{}}`) },
	"a newer revision":  func(id string) { say(id, newerRevision) },
	"the same after 3 s": func(id string) {
		time.Sleep(3 * time.Second)
		say(id, newerRevision)
	},
}

const protocolNewer = "2026-07-28"

const newerRevision = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` +
	`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`

func say(id, outcome string) { answer(json.RawMessage(id), outcome) }

// serveDiscovered runs the server "discovered".
func serveDiscovered() {
	note := func(line string) {
		f, err := os.OpenFile(os.Getenv(discoverLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, line)
			f.Close()
		}
	}
	note("start")
	start, _ := time.ParseDuration(os.Getenv(discoverStart))
	lines := make(chan string, 100)
	read := func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
		close(lines)
	}
	if os.Getenv(discoverReads) != "" {
		go read()
		time.Sleep(start)
	} else {
		time.Sleep(start)
		go read()
	}
	for line := range lines {
		msg := rpc.Parse([]byte(line))
		note(msg.Method)
		switch {
		case msg.Method == rpc.MethodDiscover:
			discoverWays[os.Getenv(discoverHow)](string(msg.ID))
		case msg.Method == rpc.MethodInitialize:
			answer(msg.ID, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case msg.IsCall():
			answer(msg.ID, `"result":{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`)
		}
	}
}

// discoverer is a server with a command, and what its processes have got.
type discoverer struct {
	*testing.T
	config mcpbridge.Server
	bridge *Bridge
	store  *mapStore
}

func newDiscoverer(t *testing.T, how, start string, reads bool) *discoverer {
	d := &discoverer{T: t, config: *server("discovered"), store: newMapStore()}
	d.config.Env[discoverHow], d.config.Env[discoverStart] = how, start
	d.config.Env["GORACE"] = "atexit_sleep_ms=0"
	d.config.Env[discoverLog] = filepath.Join(t.TempDir(), "log")
	if reads {
		d.config.Env[discoverReads] = "1"
	}
	d.anew()
	return d
}

// anew makes another process of the bridge, with the same store.
func (d *discoverer) anew() {
	if d.bridge != nil {
		d.bridge.Close()
	}
	d.bridge = New([]mcpbridge.Server{d.config}, nil)
	d.Cleanup(d.bridge.Close)
}

// use opens a session, makes a call, and closes the session after f. It returns the revision, how long the call took from the
// dial on, and what each process that was started got.
func (d *discoverer) use() (revision string, took time.Duration, processes [][]string) {
	d.Helper()
	os.Remove(d.config.Env[discoverLog])
	ctx, cancel := context.WithTimeout(d.Context(), 30*time.Second)
	defer cancel()
	began := time.Now()
	c, err := d.bridge.Dial(ctx, dial.Request{Key: messages.Key{Server: "test"}, Store: d.store, Down: func(*mcpbridge.Error) {}})
	require.NoError(d, err)
	_, err = c.Do(ctx, toolCall())
	require.NoError(d, err)
	took, revision = time.Since(began), c.Info().Server.ProtocolVersion
	processes = d.processes()
	if speaksNewer := strings.Contains("a newer revision, the same after 3 s", d.config.Env[discoverHow]); speaksNewer && revision < protocolNewer {
		require.Eventually(d, func() bool {
			record, _ := d.store.Load(ctx, d.bridge.servers["test"].record(d.store).key)
			return record != nil && strings.Contains(string(record.List), `"late":true`)
		}, 10*time.Second, time.Millisecond, "its answer is still to come")
	}
	require.NoError(d, c.Close(ctx))
	return revision, took, processes
}

// processes returns the requests that each process got.
func (d *discoverer) processes() (all [][]string) {
	text, err := os.ReadFile(d.config.Env[discoverLog])
	require.NoError(d, err)
	for _, one := range strings.Split(string(text), "start\n")[1:] {
		all = append(all, strings.Fields(one))
	}
	return all
}

var (
	inOldWay   = []string{"initialize", "notifications/initialized", "tools/call"}
	askedFirst = append([]string{"server/discover"}, inOldWay...)
	newer      = []string{"server/discover", "tools/call"}
)

// Only an exit starts another process. Then, as after silence, the next process is not asked: that is remembered, also by the
// store.
func TestServerThatDoesNotKnowServerDiscoverWorksAtTheFirstCall(t *testing.T) {
	t.Parallel()
	for how := range discoverWays {
		if how == "the same after 3 s" {
			continue
		}
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			exits, costs := strings.Contains(how, "exit"), strings.Contains(how, "exit") || slices.Contains([]string{"silence", "text", "half a message"}, how)
			first := [][]string{askedFirst}
			later := [][]string{inOldWay}
			switch {
			case exits:
				first = [][]string{{"server/discover"}, inOldWay}
			case how == "a newer revision":
				first, later = [][]string{newer}, [][]string{newer}
			}
			d := newDiscoverer(t, how, "300ms", false)
			for try := 1; ; try++ { // other tests may take the processor for a while
				d.anew()
				d.store = newMapStore()
				revision, took, processes := d.use()
				require.Equal(t, how == "a newer revision", revision == protocolNewer)
				require.Equal(t, first, processes)
				_, start, processes := d.use()
				require.Equal(t, later, processes, "it is remembered")
				limit := max(time.Second, 2*start+discoverSilence) // of which a machine that is busy takes more
				if took < limit {
					break
				}
				require.Less(t, try, 10, "it took %v, and a start takes %v", took, start)
			}
			if how == "a newer revision" {
				return
			}
			d.anew()
			_, _, processes := d.use()
			switch {
			case costs:
				require.Equal(t, [][]string{inOldWay}, processes, "the store remembers it")
			case runtime.GOOS == "linux":
				require.Equal(t, [][]string{askedFirst}, processes, "it costs nothing to ask again")
			default: // only Linux tells when a request was read: elsewhere a slow start counts as silence, which is remembered
				require.Contains(t, [][][]string{{askedFirst}, {inOldWay}}, processes)
			}
		})
	}
}

// A wrapper that reads at once may hide a server of any kind.
func TestServerBehindAWrapperThatReadsAtOnceIsStartedAgainOnlyIfItExits(t *testing.T) {
	t.Parallel()
	for how, first := range map[string][][]string{
		"exit with 1": {{"server/discover"}, inOldWay}, "silence": {askedFirst}, "an error": {askedFirst}, "a newer revision": {askedFirst},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d := newDiscoverer(t, how, "9s", true)
			_, _, processes := d.use()
			require.Equal(t, first, processes)
			d.anew()
			revision, _, again := d.use()
			if how == "a newer revision" {
				require.Equal(t, protocolNewer, revision)
				require.Equal(t, [][]string{newer}, again)
				return
			}
			require.Equal(t, [][]string{inOldWay}, again)
		})
	}
}

func TestServerThatAnswersServerDiscoverLateIsUsedInItsRevisionAtTheNextStart(t *testing.T) {
	t.Parallel()
	d := newDiscoverer(t, "the same after 3 s", "0s", false)
	revision, _, processes := d.use()
	require.Equal(t, "2025-06-18", revision)
	require.Equal(t, [][]string{askedFirst}, processes)
	for _, anew := range []bool{false, true, true} {
		if anew {
			d.anew()
		}
		revision, _, processes = d.use()
		require.Equal(t, protocolNewer, revision)
		require.Equal(t, [][]string{newer}, processes)
	}
}

// slow is a server that answers server/discover late, and initialize at once.
func slow(initialize string, discover time.Duration) *puppet {
	return &puppet{
		says: map[string]string{
			rpc.MethodDiscover: `{"jsonrpc":"2.0","id":%s,` + newerRevision + `}`, rpc.MethodInitialize: `{"jsonrpc":"2.0","id":%s,` + initialize + `}`,
		},
		late: map[string]time.Duration{rpc.MethodDiscover: discover},
	}
}

// dialSlow opens a session with a slow server, and closes it.
func dialSlow(t *testing.T, p *puppet) (revision string, took time.Duration, err error) {
	p.Config = &mcpbridge.Server{MaxResult: 1 << 20}
	at := &endpoint{dialect: new(dialect), Server: mcpbridge.Server{Name: "test", MaxResult: 1 << 20}, newest: p}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	defer time.Sleep(time.Hour) // so that the server has said everything
	c, e := New(nil, nil).opener.open(ctx, at, attempt{})
	took = time.Since(began)
	if e != nil {
		return "", took, e
	}
	require.NoError(t, c.Close(ctx))
	return c.info.Server.ProtocolVersion, took, nil
}

// A server that speaks only the newest revision refuses initialize, and its answer to server/discover is worth the wait.
func TestServerWithoutInitializeMayAnswerServerDiscoverLate(t *testing.T) {
	for how, longest := range map[string]time.Duration{
		`"error":{"code":-32601,"message":"Method not found: initialize"}`: 15 * time.Second,
		`"error":{"code":-32022,"message":"unsupported"}`:                  15 * time.Second,
		`"error":{"code":-32602,"message":"_meta is missing"}`:             4 * time.Second,
	} {
		for _, late := range []time.Duration{discoverSilence, 700 * time.Millisecond, longest} {
			for range 20 { // the order of goroutines differs
				synctest.Test(t, func(t *testing.T) {
					revision, _, err := dialSlow(t, slow(how, late))
					require.NoError(t, err, "%s after %v", how, late)
					require.Equal(t, protocolNewer, revision)
				})
			}
		}
	}
}

func TestRefusalOfInitializeIsReportedByAServerThatIsSilentAtServerDiscover(t *testing.T) {
	for how, said := range map[string]string{
		`"error":{"code":-32000,"message":"no license"}`:                   "no license",
		`"result":{"protocolVersion":"3000-01-01","capabilities":{}}`:      "unsupported protocol version",
		`"error":{"code":-32601,"message":"Method not found: initialize"}`: "timed out",
	} {
		synctest.Test(t, func(t *testing.T) {
			_, took, err := dialSlow(t, slow(how, time.Hour))
			require.ErrorContains(t, err, said)
			if said != "timed out" {
				require.Less(t, took, discoverTimeout+time.Second)
			}
		})
	}
}

// A success of initialize does not wait for server/discover. The answer comes before the handshake is remembered, or afterwards.
func TestLateAnswerToServerDiscoverIsRememberedWheneverItComes(t *testing.T) {
	for _, late := range []time.Duration{discoverSilence, discoverSilence + 1, time.Second} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				p := slow(`"result":{"protocolVersion":"2025-06-18","capabilities":{}}`, late)
				p.Config = &mcpbridge.Server{MaxResult: 1 << 20}
				at := &endpoint{dialect: new(dialect), Server: mcpbridge.Server{Name: "test", MaxResult: 1 << 20}, newest: p}
				began := time.Now()
				c, e := New(nil, nil).opener.open(t.Context(), at, attempt{})
				require.Nil(t, e)
				require.Less(t, time.Since(began), discoverSilence+time.Millisecond)
				time.Sleep(2 * time.Second)
				if c.info.Server.ProtocolVersion < protocolNewer {
					require.True(t, at.dialect.isLate())
				}
				require.False(t, at.dialect.isOld())
				require.NoError(t, c.Close(t.Context()))
			})
		}
	}
}

// A process that ends in any case is started twice, and nothing is remembered.
func TestProcessThatAlsoEndsAtInitializeIsNotRememberedAsOld(t *testing.T) {
	config := server("quitter")
	b := New([]mcpbridge.Server{*config}, nil)
	defer b.Close()
	store := newMapStore()
	_, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Store: store, Down: func(*mcpbridge.Error) {}})
	require.ErrorContains(t, err, "exited with status 4")
	require.False(t, b.servers["test"].dialect.isOld())
	require.Empty(t, store.records)
}

// mapStore is a store in memory.
type mapStore struct {
	mu      sync.Mutex
	records map[messages.Key]*mcpbridge.Record
}

func newMapStore() *mapStore { return &mapStore{records: map[messages.Key]*mcpbridge.Record{}} }

func (s *mapStore) Load(_ context.Context, key messages.Key) (*mcpbridge.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[key], nil
}

func (s *mapStore) Save(_ context.Context, key messages.Key, record *mcpbridge.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[key] = record
	return nil
}

func (*mapStore) Delete(context.Context, messages.Key) error { return nil }

func (*mapStore) Keys(context.Context) ([]messages.Key, error) { return nil, nil }
