package cluster

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The engine trusts what comes in: an unknown type ends the process, an index out of range
// panics, PoisonPill stops any actor, and its other methods panic with "implement me". What
// it does not need is refused here.

// envelopeType is the type of what nodes send to each other.
const envelopeType = "mcpactor.cluster.v1.Envelope"

// accepted are the types that members send to each other.
var accepted = map[string]bool{
	envelopeType:                   true,
	"actor.DeadLetterResponse":     true,
	"cluster.ActivationRequest":    true,
	"cluster.ActivationResponse":   true,
	"cluster.ActivationTerminated": true,
	"cluster.GossipRequest":        true,
	"cluster.GossipResponse":       true,
}

// errRefused ends the connection of a peer that sends something else.
var errRefused = status.Error(codes.InvalidArgument, "mcpactor: the message is not one that members send to each other")

// guards are the options of the server that check what comes in.
func guards() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
			defer func() {
				if recover() != nil {
					err = errRefused
				}
			}()
			return handle(srv, &guarded{stream})
		}),
		grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
			return nil, status.Error(codes.Unimplemented, "mcpactor: members have no such method")
		}),
	}
}

// guarded is a stream whose messages are checked.
type guarded struct{ grpc.ServerStream }

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
		if err := check(kind.MessageBatch); err != nil {
			return errors.Join(errRefused, err)
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

// check returns an error if a batch has anything that the engine must not see.
func check(batch *remote.MessageBatch) error {
	for _, name := range batch.GetTypeNames() {
		if !accepted[name] {
			return errRefused
		}
	}
	targets, senders, types := int32(len(batch.GetTargets())), int32(len(batch.GetSenders())), int32(len(batch.GetTypeNames()))
	for _, e := range batch.GetEnvelopes() {
		switch {
		case e.GetTarget() < 0 || e.GetTarget() >= targets, e.GetSender() < 0 || e.GetSender() > senders,
			e.GetTypeId() < 0 || e.GetTypeId() >= types, e.GetSerializerId() != 0:
			return errRefused
		}
		if batch.GetTypeNames()[e.GetTypeId()] == envelopeType && batch.GetTargets()[e.GetTarget()].GetId() != relayName {
			return errRefused
		}
	}
	for _, pid := range append(batch.GetTargets(), batch.GetSenders()...) {
		if pid == nil {
			return errRefused
		}
	}
	return nil
}
