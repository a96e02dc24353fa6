// An authorization server on this machine: oidc-provider, with two clients and a way to say yes without a browser.
//
//   node --input-type=module -e THIS ENTRY_OF_OIDC_PROVIDER OPTIONS_AS_JSON
//
// Prints its issuer when it listens, and ends with its standard input.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';

const [entry, options] = [process.argv[1], JSON.parse(process.argv[2])];
const { default: Provider } = await import(pathToFileURL(entry));

const server = createServer();
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const issuer = `http://127.0.0.1:${server.address().port}`;

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const scope = 'openid offline_access email api:read api:write';
const client = { redirect_uris: [], response_types: [], scope };
const provider = new Provider(issuer, {
  clients: [
    {
      ...client,
      client_id: options.public_client,
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: [DEVICE, 'refresh_token'],
    },
    {
      ...client,
      client_id: options.secret_client,
      client_secret: options.secret,
      grant_types: ['client_credentials', DEVICE, 'refresh_token'],
    },
  ],
  // The last is nobody's.
  scopes: [...scope.split(' '), 'api:admin'],
  claims: { openid: ['sub'], email: ['email'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['only a test'] },
  features: {
    devInteractions: { enabled: false },
    deviceFlow: { enabled: true },
    clientCredentials: { enabled: true },
    introspection: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      // A token for a resource is a JWT, and opaque otherwise.
      getResourceServerInfo: (_, resource) => ({
        scope: 'api:read api:write', audience: resource, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  extraParams: ['audience'],
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, email: `${sub}@example.test` }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  rotateRefreshToken: true,
  ttl: {
    AccessToken: options.access_seconds,
    ClientCredentials: options.access_seconds,
    DeviceCode: options.device_seconds,
    Grant: 86400,
    IdToken: 3600,
    RefreshToken: 86400,
  },
});

// How many requests for tokens were served, and how many refused, by grant.
const counts = { served: {}, refused: {} };
const count = (side) => (ctx) => {
  const grant = ctx.oidc.params?.grant_type ?? 'none';
  side[grant] = (side[grant] ?? 0) + 1;
};
provider.on('grant.success', count(counts.served));
provider.on('grant.error', count(counts.refused));
provider.on('server_error', (_, error) => console.error(error));

// What a person does in the browser: approves a user code as this account, or denies it.
async function decide(query) {
  const code = await provider.DeviceCode.findByUserCode((query.get('user_code') ?? '').replace(/\W/g, ''));
  if (!code) return [404, { error: 'no such code' }];
  if (query.get('deny')) {
    code.error = 'access_denied';
    code.errorDescription = 'the person said no';
  } else {
    const accountId = query.get('account') ?? 'somebody';
    const grant = new provider.Grant({ accountId, clientId: code.clientId });
    const asked = code.params.scope ?? '';
    grant.addOIDCScope(asked);
    if (code.params.resource) grant.addResourceScope(code.params.resource, asked);
    Object.assign(code, {
      accountId, grantId: await grant.save(), scope: asked, resource: code.params.resource,
      authTime: Math.floor(Date.now() / 1000),
    });
  }
  await code.save();
  return [200, {}];
}

// The account or client of a currently valid opaque token, and nothing for anything else.
async function whoami(header) {
  const value = /^Bearer (.+)$/i.exec(header ?? '')?.[1];
  const token = value && (await provider.AccessToken.find(value) ?? await provider.ClientCredentials.find(value));
  if (!token?.isValid) return [401, { error: 'invalid_token' }];
  return [200, { account: token.accountId ?? token.clientId, scope: token.scope ?? '' }];
}

const served = provider.callback();
server.on('request', async (request, response) => {
  const url = new URL(request.url, issuer);
  const answer = ([status, body]) => {
    const text = JSON.stringify(body);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    if (status === 401) headers['www-authenticate'] = 'Bearer error="invalid_token"';
    response.writeHead(status, headers).end(text);
  };
  try {
    if (url.pathname === '/decide') return answer(await decide(url.searchParams));
    if (url.pathname === '/whoami') return answer(await whoami(request.headers.authorization));
    if (url.pathname === '/counts') return answer([200, counts]);
  } catch (error) {
    console.error(error);
    return answer([500, {}]);
  }
  // For tests in which several want a token at once.
  if (url.pathname === '/token' && options.delay_millis) {
    await new Promise((done) => { setTimeout(done, options.delay_millis); });
  }
  if (url.pathname === '/token/revocation' && options.failed_revocations > 0) {
    options.failed_revocations -= 1;
    return answer([503, { error: 'temporarily_unavailable' }]);
  }
  return served(request, response);
});

process.stdin.on('end', () => process.exit(0)).resume();
console.log(issuer);
