package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// inspectTimeout bounds how long a collection waits for the supervisor.
const inspectTimeout = 5 * time.Second

// states are all states of a session: a metric has each of them, so that a state that no
// session is in is 0.
var states = []messages.State{
	messages.StateWaiting, messages.StateConnecting, messages.StateReady, messages.StateDraining, messages.StateBroken,
}

// observe reports the state of a supervisor with each collection, and counts its events, until
// stop is called.
func (m *metrics) observe(sup *supervisor.Supervisor) (stop func(), err error) {
	var errs []error
	var all []metric.Observable
	upDown := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		o, err := m.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, errs = append(all, o), append(errs, err)
		return o
	}
	counter := func(name, unit, description string) metric.Int64ObservableCounter {
		o, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, errs = append(all, o), append(errs, err)
		return o
	}
	sessions := upDown(metricSessions, "{session}", "Sessions by state.")
	inFlight := upDown(metricInFlight, "{call}", "Calls that run.")
	waiting := upDown(metricWaiting, "{call}", "Calls that wait for a connection, or for other calls of their session.")
	used := upDown(metricSlotsUsed, "{slot}", "Sessions that are open, dial or drain.")
	limit := upDown(metricSlotsLimit, "{slot}", "How many sessions may be open: MaxSessions.")
	handles := upDown(metricHandles, "{handle}", "Handles of the declared kinds by state.")
	turns := upDown(metricHandleWaiting, "{call}", "Calls that wait for their turn to mint a handle.")
	dropped := counter(metricEventsDropped, "{event}", "Events that were dropped, because their handlers were too slow.")
	strays := counter(metricStrays, "{answer}", "Answers that were dropped, because they belong to other connections.")
	bounded := counter(metricBounded, "{call}", "Calls that were not sent, because they were beyond the bounds of their server.")
	up, err := m.meter.Int64ObservableGauge(metricServerUp, metric.WithDescription("1 if the server has answered, 0 if the last dial did not reach it."))
	all, errs = append(all, up), append(errs, err)
	gauge := func(name, unit, description string) metric.Float64ObservableGauge {
		o, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		all, errs = append(all, o), append(errs, err)
		return o
	}
	memberUp := gauge(metricMemberUp, "", "1 if the member of the cluster starts calls, 0 if it is fenced.")
	refused := counter(metricMemberRefused, "{call}", "Calls that the member has failed before a supervisor had them.")
	view := gauge(metricMemberView, "", "Number of the view of the cluster that the member has.")
	lease := gauge(metricMemberLease, "s", "Time for which the member may act without an answer of the witness.")
	hop := gauge(metricMemberHop, "s", "Time of a heartbeat to the slowest other member and back.")
	scopes := upDown(metricListScopes, "{scope}", "Scopes that have asked for lists of the catalogue.")
	age, err := m.meter.Int64ObservableGauge(metricListAge, metric.WithUnit("s"), metric.WithDescription("Age of the oldest list of the catalogue."))
	all, errs = append(all, age), append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	registration, err := m.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
		defer cancel()
		reply, err := sup.Client().Do(ctx, &messages.Inspect{Limit: 1}) // the counts need no list
		if errors.Is(err, messages.CodeClosed) {
			return nil
		} else if err != nil {
			return err
		}
		snap := reply.(*messages.Snapshot)
		for _, srv := range snap.Servers {
			of := m.with(labels{server: srv.Name})
			for _, state := range states {
				o.ObserveInt64(sessions, int64(srv.States[state]), m.with(labels{server: srv.Name, state: string(state)}))
			}
			o.ObserveInt64(inFlight, int64(srv.Load.InFlight), of)
			o.ObserveInt64(waiting, int64(srv.Load.Waiting), of)
			o.ObserveInt64(bounded, int64(srv.Load.Bounded), of)
			if len(srv.Handles) > 0 {
				counts, waiting := countHandles(srv.Handles)
				o.ObserveInt64(turns, int64(waiting), of)
				for state, n := range counts {
					o.ObserveInt64(handles, int64(n), m.with(labels{server: srv.Name, state: state}))
				}
			}
			for method, lists := range srv.Lists {
				of := m.with(labels{server: srv.Name, method: method})
				o.ObserveInt64(scopes, int64(lists.Scopes), of)
				o.ObserveInt64(age, int64(snap.Time.Sub(lists.Oldest).Seconds()), of)
			}
			switch srv.Health {
			case messages.HealthUp:
				o.ObserveInt64(up, 1, of)
			case messages.HealthDown:
				o.ObserveInt64(up, 0, of)
			}
		}
		for _, member := range snap.Members {
			isUp := 1.0
			if member.Fenced != "" {
				isUp = 0
			}
			o.ObserveFloat64(memberUp, isUp)
			o.ObserveInt64(refused, int64(member.Refused))
			o.ObserveFloat64(view, float64(member.View))
			o.ObserveFloat64(lease, member.Lease.Seconds())
			o.ObserveFloat64(hop, member.Hop.Seconds())
		}
		o.ObserveInt64(used, int64(snap.Open))
		o.ObserveInt64(limit, int64(snap.Cap))
		o.ObserveInt64(dropped, int64(snap.Counters.Dropped))
		o.ObserveInt64(strays, int64(snap.Counters.Strays))
		return nil
	}, all...)
	if err != nil {
		return nil, err
	}
	unsubscribe := sup.Subscribe(m.onEvent)
	return func() {
		unsubscribe()
		registration.Unregister() //nolint:errcheck // a second time does nothing
	}, nil
}

// countHandles returns how many handles of all kinds there are by state, and how many calls wait for their turn.
func countHandles(kinds []messages.HandleSnapshot) (counts map[string]int, waiting int) {
	counts = map[string]int{}
	for _, kind := range kinds {
		counts["minting"] += kind.Minting
		counts["held"] += kind.Held
		counts["releasing"] += kind.Releasing
		counts["unanswered"] += kind.Unanswered
		counts["left"] += kind.LeftCount
		waiting += kind.Waiting
	}
	return counts, waiting
}

// onEvent counts an event of a session.
func (m *metrics) onEvent(event messages.Event) {
	ctx := context.Background()
	switch e := event.(type) {
	case *messages.SessionExpired:
		m.count(ctx, m.faults, labels{server: e.Key.Server, reason: string(messages.CodeExpired)})
	case *messages.SessionLost:
		m.count(ctx, m.faults, labels{server: e.Key.Server, reason: string(messages.CodeLost)})
	case *messages.SessionGaveUp:
		m.count(ctx, m.faults, labels{server: e.Key.Server, reason: reasonGaveUp})
	case *messages.SessionRestarted:
		m.count(ctx, m.rebuilds, labels{server: e.Key.Server, outcome: outcome(e.Attached)})
		m.sessionEnded(ctx, e.Key.Server, e.Lifetime, other)
	case *messages.SessionEvicted:
		m.count(ctx, m.evictions, labels{server: e.Key.Server, reason: string(e.Reason)})
	case *messages.SessionClosed:
		m.sessionEnded(ctx, e.Key.Server, e.Lifetime, "")
	case *messages.HandleMinted:
		m.count(ctx, m.handles, labels{server: e.Key.Server, outcome: "minted"})
	case *messages.HandleReleased:
		outcome := "released"
		if e.Gone {
			outcome = "gone"
		}
		m.count(ctx, m.handles, labels{server: e.Key.Server, outcome: outcome})
	case *messages.HandleLost:
		m.count(ctx, m.handles, labels{server: e.Key.Server, outcome: "lost"})
	case *messages.HandleLeft:
		m.count(ctx, m.handles, labels{server: e.Key.Server, outcome: "left"})
	}
}

// reasonGaveUp is the reason of a [messages.SessionGaveUp].
const reasonGaveUp = "gave_up"

// sessionEnded records how long an MCP session was open. A session that was never open, or that
// goes on, has no lifetime.
func (m *metrics) sessionEnded(ctx context.Context, server string, lifetime time.Duration, errorType string) {
	if lifetime > 0 {
		m.record(ctx, m.sessions, lifetime, labels{server: server, errorType: errorType})
	}
}
