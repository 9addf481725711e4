package streamable

import (
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// message is one message of the SDK on its way to the server.
type message struct {
	rpc.Envelope                // with the id of the SDK
	req          *http.Request  // with the id of the connection
	ex           *wire.Exchange // where its steps are noted
	isHandshake  bool           // it is sent before the session is open
}
