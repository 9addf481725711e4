// An authorization server: oidc-provider, with its own pages for login and consent. PKCE is required, and a refresh token is
// valid once: one that is used twice ends the login. OPTIONS says how it is, in JSON: see authorization_test.go.
const { issuer, audience, accessSeconds, ahead, documents, closed, unbound, nonces, clients, trusted, names } = JSON.parse(process.env.OPTIONS);

// Its clock is some seconds ahead of others. The libraries below read it.
const { now } = Date;
globalThis.Date = class extends Date {
	constructor(...args) {
		super(...(args.length ? args : [now() + 1000 * ahead]));
	}
	static now() {
		return now() + 1000 * ahead;
	}
};

const { errors, Provider } = await import("oidc-provider");
const { default: validateDpop, checkDpopReplay } = await import("oidc-provider/lib/helpers/validate_dpop.js");
const { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } = await import("jose");

const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
const machines = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const exchange = "urn:ietf:params:oauth:grant-type:token-exchange";

const provider = new Provider(issuer, {
	cookies: { keys: ["of the tests"] },
	jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: "1", alg: "ES256", use: "sig" }] },
	clientDefaults: { id_token_signed_response_alg: "ES256" },
	fetch: (url, { dispatcher, ...options }) => fetch(url, options), // the dispatcher lets nothing through to this machine
	scopes: ["openid", "offline_access", "mcp"],
	pkce: { required: () => true },
	rotateRefreshToken: true,
	issueRefreshToken: async () => true,
	ttl: { AccessToken: accessSeconds, ClientCredentials: accessSeconds, Grant: 3600, IdToken: 3600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
	features: {
		registration: { enabled: !closed },
		revocation: { enabled: true },
		introspection: { enabled: true },
		clientCredentials: { enabled: true },
		clientIdMetadataDocument: { enabled: documents, ack: "draft-02" },
		dPoP: { enabled: !unbound, nonceSecret: Buffer.alloc(32, issuer), requireNonce: () => nonces },
		resourceIndicators: {
			enabled: true,
			getResourceServerInfo: async (_ctx, resource) => {
				if (resource !== audience) throw new errors.InvalidTarget();
				return { scope: "mcp", audience, accessTokenFormat: "opaque", accessTokenTTL: accessSeconds };
			},
		},
	},
	clients,
	findAccount: async (_ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
});

provider.use(async (ctx, next) => {
	ctx.set("Date", new Date().toUTCString()); // Node's own is that of the machine
	await next();
});

// Who signs JWTs that count here as the authorization of a machine, by issuer.
const signers = new Map((trusted ?? []).map((from) => [from, createRemoteJWKSet(new URL(`${from}/jwks`))]));
const used = new Set();

provider.registerGrantType(
	machines,
	async (ctx) => {
		const { client, params } = ctx.oidc;
		const proof = await validateDpop(provider, ctx);
		await checkDpopReplay(provider, ctx, proof, client.clientId);
		let checked;
		try {
			const from = JSON.parse(Buffer.from(params.assertion.split(".")[1], "base64url")).iss;
			checked = await jwtVerify(params.assertion, signers.get(from), { audience: issuer, requiredClaims: ["sub", "exp"] });
		} catch (cause) {
			throw new errors.InvalidGrant("the assertion is not valid", { cause });
		}
		const { protectedHeader: header, payload } = checked;
		if (header.typ === "oauth-id-jag+jwt") {
			if (payload.client_id !== client.clientId || payload.resource !== audience) throw new errors.InvalidGrant("the ID-JAG is for others");
			if (used.has(payload.jti)) throw new errors.InvalidGrant("the ID-JAG was used before");
			used.add(payload.jti);
		}
		const grant = new provider.Grant({ accountId: payload.sub, clientId: client.clientId });
		grant.addResourceScope(audience, "mcp");
		const token = new provider.AccessToken({ accountId: payload.sub, client, grantId: await grant.save(), gty: machines, scope: "mcp" });
		token.resourceServer = new provider.ResourceServer(audience, { scope: "mcp", audience, accessTokenFormat: "opaque", accessTokenTTL: accessSeconds });
		if (proof) token.setThumbprint("jkt", proof.thumbprint);
		ctx.body = { access_token: await token.save(), expires_in: token.expiration, scope: token.scope, token_type: token.tokenType };
	},
	["assertion", "scope", "resource"],
);

// As an identity provider it exchanges its ID tokens for ID-JAGs. Of a client, names has the name at the other server.
provider.registerGrantType(
	exchange,
	async (ctx) => {
		const { client, params } = ctx.oidc;
		const type = "urn:ietf:params:oauth:token-type:id-jag";
		if (params.requested_token_type !== type || params.subject_token_type !== "urn:ietf:params:oauth:token-type:id_token") {
			throw new errors.InvalidRequest("it exchanges only ID tokens, for ID-JAGs");
		}
		let person;
		try {
			person = (await jwtVerify(params.subject_token, publicKey, { issuer, audience: client.clientId })).payload;
		} catch (cause) {
			throw new errors.InvalidGrant("the ID token is not valid", { cause });
		}
		const grant = await new SignJWT({ client_id: names[client.clientId], resource: params.resource, scope: params.scope })
			.setProtectedHeader({ alg: "ES256", kid: "1", typ: "oauth-id-jag+jwt" })
			.setIssuer(issuer)
			.setSubject(person.sub)
			.setAudience(params.audience)
			.setJti(crypto.randomUUID())
			.setIssuedAt()
			.setExpirationTime("5m")
			.sign(privateKey);
		ctx.body = { access_token: grant, issued_token_type: type, token_type: "N_A", expires_in: 300 };
	},
	["requested_token_type", "subject_token", "subject_token_type", "audience", "resource", "scope"],
);

provider.listen(Number(process.env.PORT), "127.0.0.1");
