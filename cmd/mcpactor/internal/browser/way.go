package browser

import (
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/visible"
)

// The ways in which an authorization server knows this program. They are in the files of logins.
const (
	byDocument     = "document"           // by its client ID metadata document
	byGiven        = "given"              // as a client that the user has registered
	byRegistration = "registered"         // it registers itself, which is deprecated since 2026-07-28
	byCredentials  = "client_credentials" // as a client with credentials of its own, which needs no person
)

// choice has the facts that decide in which way the program is known.
type choice struct {
	server   *oauthresource.Server // nil if it has no metadata: it then registers programs, as in 2025-03-26
	given    bool                  // the user names a client
	kept     bool                  // the last login was with a client that the user had named
	document string                // the URL of the client ID metadata document
	defect   error                 // why the document cannot be used; nil as long as that is not known
}

// way returns the way that is taken. A client that the user names would have no effect otherwise, and comes first.
func (c choice) way() (string, error) {
	switch {
	case c.given:
		return byGiven, nil
	case c.takesDocument() && c.defect == nil:
		return byDocument, nil
	case c.kept:
		return byGiven, nil
	case c.server == nil || c.server.RegistrationEndpoint != "":
		return byRegistration, nil
	}
	text := fmt.Sprintf("the authorization server %s registers no programs", visible.Detail(c.server.Issuer))
	if c.takesDocument() {
		text += ", and cannot use the client document"
	}
	return "", &remedied{text, "register a client there, and name it with --client-id"}
}

// remedied is an error that says what a person can do about it.
type remedied struct{ text, remedy string }

func (e *remedied) Error() string { return e.text + ": " + e.remedy }

// takesDocument reports whether the server takes the document, which is that of a client without a secret.
func (c choice) takesDocument() bool {
	if c.server == nil || !c.server.ClientIDMetadataDocumentSupported {
		return false
	}
	methods := c.server.TokenEndpointAuthMethodsSupported
	return len(methods) == 0 || slices.Contains(methods, "none")
}

// said tells a person which way is taken.
func (c choice) said(way string) string {
	switch {
	case way == byDocument:
		return "this program is known by its client document " + c.document + ", as the server allows"
	case way == byGiven && !c.given:
		return "this program is known as the client of the last login, which you have registered"
	case way == byGiven:
		return "this program is known as the client that you have registered"
	}
	return "this program registers itself as a client"
}

// Words says by which way a login was made, in words. Logins of before do not know their way.
func Words(way string) string {
	switch way {
	case byDocument:
		return "logged in by its client document"
	case byGiven:
		return "logged in with a client you registered"
	case byRegistration:
		return "logged in with a client it registered itself"
	case byCredentials:
		return "logged in by client credentials"
	case "workload_identity": // the grants of a file
		return "logged in by workload identity"
	case "enterprise":
		return "logged in by enterprise-managed authorization"
	}
	return "logged in"
}
