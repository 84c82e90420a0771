package interop

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// identity is a credential of the SDK: it gives out tokens with these claims, good for an hour but for what they say (../identity.py).
type identity struct {
	claims map[string]any
	// Signed with a key that the secured broker does not know.
	isForged bool
}

func (i identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	claims, err := json.Marshal(i.claims)
	if err != nil {
		return azcore.AccessToken{}, err
	}
	arguments := []string{string(claims)}
	if i.isForged {
		arguments = append(arguments, "--forged")
	}
	token, err := run(os.Getenv("JITNEY_TOKEN"), arguments...)
	return azcore.AccessToken{Token: token, ExpiresOn: time.Now().Add(time.Hour)}, err
}

// as connects with TLS and an identity.
func (p endpoint) as(t *testing.T, who identity) *bench {
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
	endpoint := secured(t)
	role := func(name string) identity {
		return identity{claims: map[string]any{"roles": []string{"Azure Service Bus Data " + name}}}
	}
	owner := endpoint.as(t, role("Owner"))
	client, err := admin.NewClient(endpoint.amqp, role("Owner"), &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: over(endpoint.trust(t))},
	})
	owner.must(err)
	o := &administrator{owner, client}
	o.createQueue("s270", nil)
	o.same(*o.queue("s270").MaxDeliveryCount, int32(10))
	o.roundTrip("s270")

	endpoint.as(t, role("Sender")).send("s270", text(1))
	receives := endpoint.as(t, role("Receiver"))
	receives.same(bodies(receives.receiver("s270").receive(1)), []string{"1"})
	endpoint.as(t, role("Sender")).deniedReceiving("s270")
	receives.deniedSending("s270")

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
		endpoint.as(t, each).denied("s270")
	}
	forged := role("Owner")
	forged.isForged = true
	endpoint.as(t, forged).denied("s270")
	for _, who := range []identity{forged, role("Sender")} {
		o.admin, err = admin.NewClient(endpoint.amqp, who, &admin.ClientOptions{
			ClientOptions: azcore.ClientOptions{Transport: over(endpoint.trust(t))},
		})
		o.must(err)
		o.status(o.tryCreateQueue("s270b", nil), http.StatusUnauthorized, "SubCode=401")
	}
}
