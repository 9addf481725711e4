// An authorization server: oidc-provider, with its own pages for login and consent. Clients register themselves, PKCE is
// required, and a refresh token is valid once: one that is used twice ends the login.
import { Provider } from "oidc-provider";

const { PORT, ACCESS_SECONDS, RESOURCE, REDIRECT } = process.env;
const issuer = `http://127.0.0.1:${PORT}`;

const provider = new Provider(issuer, {
	cookies: { keys: ["of the tests"] },
	scopes: ["openid", "offline_access", "mcp"],
	pkce: { required: () => true },
	rotateRefreshToken: true,
	issueRefreshToken: async () => true,
	ttl: { AccessToken: Number(ACCESS_SECONDS), Grant: 3600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
	features: {
		registration: { enabled: true },
		revocation: { enabled: true },
		introspection: { enabled: true },
		resourceIndicators: {
			enabled: true,
			getResourceServerInfo: async (_ctx, resource) => {
				if (resource !== RESOURCE) throw new Error("unknown resource");
				return { scope: "mcp", audience: resource, accessTokenFormat: "opaque", accessTokenTTL: Number(ACCESS_SECONDS) };
			},
		},
	},
	clients: [
		{ client_id: "given", redirect_uris: [REDIRECT], token_endpoint_auth_method: "none", application_type: "native", grant_types: ["authorization_code", "refresh_token"] },
		{ client_id: "resource", client_secret: "secret of the resource", redirect_uris: [], response_types: [], grant_types: [] },
	],
	findAccount: async (_ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
});
provider.listen(Number(PORT), "127.0.0.1");
