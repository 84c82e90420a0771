package interop

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// issuerName is the issuer that the guarded broker believes.
const issuerName = "https://issuer.invalid/tenant"

// issuer signs tokens as an identity provider does.
type issuer struct {
	key *rsa.PrivateKey
}

func newIssuer() (*issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	return &issuer{key}, err
}

// keySet is the document by which its signatures can be verified.
func (i *issuer) keySet() ([]byte, error) {
	encoded := base64.RawURLEncoding.EncodeToString
	return json.Marshal(map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "n": encoded(i.key.N.Bytes()),
		"e": encoded(big.NewInt(int64(i.key.E)).Bytes()),
	}}})
}

// identity is a credential of the SDK: it gives out tokens with these claims, good for an hour but for what they say.
type identity struct {
	issuer *issuer
	claims map[string]any
}

func (i identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	now := time.Now()
	claims := map[string]any{
		"iss": issuerName, "aud": "https://servicebus.azure.net", "sub": "somebody",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for name, value := range i.claims {
		claims[name] = value
	}
	header, err := json.Marshal(map[string]any{"alg": "RS256", "typ": "JWT", "kid": "one"})
	if err != nil {
		return azcore.AccessToken{}, err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return azcore.AccessToken{}, err
	}
	encoded := base64.RawURLEncoding.EncodeToString
	signed := encoded(header) + "." + encoded(payload)
	hash := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.issuer.key, crypto.SHA256, hash[:])
	if err != nil {
		return azcore.AccessToken{}, err
	}
	return azcore.AccessToken{Token: signed + "." + encoded(signature), ExpiresOn: now.Add(time.Hour)}, nil
}

// as connects with TLS and an identity.
func (p place) as(t *testing.T, who identity) *bench {
	t.Helper()
	client, err := azservicebus.NewClient(p.amqp, who, &azservicebus.ClientOptions{
		TLSConfig: p.trust(t), RetryOptions: quickly,
	})
	if err != nil {
		t.Fatalf("no client: %v", err)
	}
	b := &bench{T: t, client: client}
	t.Cleanup(b.close)
	return b
}

func TestS270_an_identity_does_what_its_roles_say(t *testing.T) {
	t.Parallel()
	place := guarded(t)
	role := func(name string) identity {
		return identity{place.issuer, map[string]any{"roles": []string{"Azure Service Bus Data " + name}}}
	}
	owner := place.as(t, role("Owner"))
	client, err := admin.NewClient(place.amqp, role("Owner"), &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: over(place.trust(t))},
	})
	owner.must(err)
	o := &office{owner, client}
	o.createQueue("s270", nil)
	o.same(*o.queue("s270").MaxDeliveryCount, int32(10))
	o.roundTrip("s270")

	place.as(t, role("Sender")).send("s270", text(1))
	receives := place.as(t, role("Receiver"))
	receives.same(bodies(receives.receiver("s270").receive(1)), []string{"1"})
	place.as(t, role("Sender")).deniedReceiving("s270")
	receives.deniedSending("s270")

	stranger, err := newIssuer()
	o.must(err)
	past := time.Now().Add(-time.Hour).Unix()
	for name, claims := range map[string]map[string]any{
		"another audience": {"aud": "https://vault.azure.net"}, "another issuer": {"iss": "https://other.invalid"},
		"expired": {"exp": past}, "no roles": {"roles": nil}, "not yet": {"nbf": time.Now().Add(time.Hour).Unix()},
	} {
		each := role("Owner")
		for claim, value := range claims {
			each.claims[claim] = value
		}
		o.Log(name)
		place.as(t, each).denied("s270")
	}
	forged := role("Owner")
	forged.issuer = stranger
	place.as(t, forged).denied("s270")
	for _, who := range []identity{forged, role("Sender")} {
		o.admin, err = admin.NewClient(place.amqp, who, &admin.ClientOptions{
			ClientOptions: azcore.ClientOptions{Transport: over(place.trust(t))},
		})
		o.must(err)
		o.status(o.tryCreateQueue("s270b", nil), http.StatusUnauthorized, "SubCode=401")
	}
}
