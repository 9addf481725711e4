package cluster

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mcpactor/mcpactor/cluster/internal/mesh"
)

// The engine trusts what comes in: an unknown type ends the process, an index out of range
// panics, PoisonPill stops any actor, a request without its content restarts the actor that
// gets it, a message for another address is passed on, and its other methods panic with
// "implement me". What it does not need is refused here.

// futures begins the ids of the processes that wait for an answer.
const futures = "future"

// receivers are the processes that may get a message of each type that members send to each
// other.
var receivers = map[string]string{
	"cluster.ActivationRequest":    disthash.PartitionActivatorActorName,
	"cluster.ActivationTerminated": "eventstream",
	"cluster.GossipRequest":        cluster.DefaultGossipActorName,
	"cluster.ActivationResponse":   futures,
	"cluster.GossipResponse":       futures,
	"actor.DeadLetterResponse":     futures,
}

// errRefused ends the connection of a peer that sends something else.
var errRefused = status.Error(codes.InvalidArgument, "mcpactor: the message is not one that members send to each other")

// guards are the options of the server of a member that check what comes in.
func guards(cfg *Config) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
			if info.FullMethod == mesh.Method { // it has a door of its own
				return handle(srv, stream)
			}
			defer func() {
				if recover() != nil {
					err = errRefused
				}
			}()
			return handle(srv, &guarded{stream, cfg})
		}),
		grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
			return nil, status.Error(codes.Unimplemented, "mcpactor: members have no such method")
		}),
	}
}

// guarded is a stream whose messages are checked.
type guarded struct {
	grpc.ServerStream
	cfg *Config
}

// RecvMsg receives a message.
func (g *guarded) RecvMsg(m any) error {
	if err := g.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	msg, ok := m.(*remote.RemoteMessage)
	if !ok {
		return errRefused
	}
	switch kind := msg.GetMessageType().(type) {
	case *remote.RemoteMessage_MessageBatch:
		if !g.fits(kind.MessageBatch) {
			return errRefused
		}
	case *remote.RemoteMessage_ConnectRequest:
		if kind.ConnectRequest.GetServerConnection() == nil {
			return errRefused
		}
	default:
		return errRefused
	}
	return nil
}

// fits reports whether a batch has nothing that the engine must not see.
func (g *guarded) fits(batch *remote.MessageBatch) bool {
	pids := slices.Concat(batch.GetTargets(), batch.GetSenders())
	if slices.Contains(pids, nil) {
		return false
	}
	targets, senders, types := int32(len(batch.GetTargets())), int32(len(batch.GetSenders())), int32(len(batch.GetTypeNames()))
	for _, e := range batch.GetEnvelopes() {
		switch {
		case e.GetTarget() < 0 || e.GetTarget() >= targets, e.GetSender() < 0 || e.GetSender() > senders,
			e.GetTypeId() < 0 || e.GetTypeId() >= types, e.GetSerializerId() != 0:
			return false
		}
		target, name := batch.GetTargets()[e.GetTarget()], batch.GetTypeNames()[e.GetTypeId()]
		receiver, known := receivers[name]
		if receiver == futures && strings.HasPrefix(target.GetId(), futures) {
			receiver = target.GetId()
		}
		if !known || target.GetId() != receiver || target.GetAddress() != g.cfg.Advertise || !g.complete(name, e.GetMessageData()) {
			return false
		}
	}
	return true
}

// complete reports whether a message of the engine has the content that its receiver needs.
func (g *guarded) complete(name string, data []byte) bool {
	switch name {
	case "cluster.ActivationRequest":
		var request cluster.ActivationRequest
		if proto.Unmarshal(data, &request) != nil {
			return false
		}
		shard, err := strconv.Atoi(request.GetClusterIdentity().GetIdentity())
		return err == nil && shard >= 0 && shard < g.cfg.Shards && request.GetClusterIdentity().GetKind() == shardKind+g.cfg.Name
	case "cluster.GossipRequest":
		var request cluster.GossipRequest
		return proto.Unmarshal(data, &request) == nil && request.State != nil
	}
	return true
}
