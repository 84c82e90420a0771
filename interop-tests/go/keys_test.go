package interop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

func TestS264_a_wrong_key_and_an_unknown_name_are_unauthorized(t *testing.T) {
	t.Parallel()
	endpoint := secured(t)
	endpoint.administrator(t).createQueue("s264", nil)
	endpoint.with(t, rootName, "wrong").denied("s264")
	endpoint.with(t, "no-such-name", endpoint.key).denied("s264")
	endpoint.with(t, rootName, endpoint.key).roundTrip("s264")
	sends, listens := endpoint.with(t, "speaker", speakerKey), endpoint.with(t, "listener", listenerKey)
	sends.send("s264", text(1))
	sends.deniedReceiving("s264")
	listens.same(bodies(listens.receiver("s264").receive(1)), []string{"1"})
	listens.deniedSending("s264")
}

// signed is a shared access signature as anybody can make one.
func signed(resource, name, key string, until time.Time) string {
	resource = url.QueryEscape(resource)
	text := fmt.Sprintf("%s\n%d", resource, until.Unix())
	hash := hmac.New(sha256.New, []byte(key))
	hash.Write([]byte(text))
	signature := url.QueryEscape(base64.StdEncoding.EncodeToString(hash.Sum(nil)))
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%d&skn=%s", resource, signature,
		until.Unix(), url.QueryEscape(name))
}

func TestS265_a_signature_is_good_for_its_resource_and_its_time(t *testing.T) {
	t.Parallel()
	endpoint := secured(t)
	for _, name := range []string{"s265", "s265b"} {
		endpoint.administrator(t).createQueue(name, nil)
	}
	soon := time.Now().Add(time.Hour)
	whole := "sb://" + endpoint.amqp + "/"
	// The namespace, in the ways that clients write it; the SDK's own tests sign the bare host.
	for _, resource := range []string{whole, "amqps://" + endpoint.amqp, "https://localhost", endpoint.amqp} {
		endpoint.bearing(t, signed(resource, rootName, endpoint.key, soon)).roundTrip("s265")
	}
	own := endpoint.bearing(t, signed(whole+"s265", rootName, endpoint.key, soon))
	own.roundTrip("s265")
	own.denied("s265b")
	for _, signature := range []string{
		signed(whole, rootName, endpoint.key, time.Now().Add(-time.Hour)),
		signed(whole, rootName, "wrong", soon),
		strings.Replace(signed(whole, rootName, endpoint.key, soon), "&se=", "&se=1", 1),
		"SharedAccessSignature sr=nonsense",
	} {
		endpoint.bearing(t, signature).denied("s265")
	}
}

func TestS265_a_link_ends_with_its_signature(t *testing.T) {
	t.Parallel()
	endpoint := secured(t)
	endpoint.administrator(t).createQueue("s265c", nil)
	resource := "sb://" + endpoint.amqp + "/s265c"
	b := endpoint.bearing(t, signed(resource, rootName, endpoint.key, time.Now().Add(4*time.Second)))
	sender, receiver := b.sender("s265c"), b.receiver("s265c")
	sender.send(text(1))
	receiver.complete(receiver.one())
	b.code(receiver.failure(), azservicebus.CodeUnauthorizedAccess)
	b.code(sender.try(text(2)), azservicebus.CodeUnauthorizedAccess)
	b.deniedSending("s265c")
}

func TestS266_a_key_allows_what_its_rule_says_on_its_entity(t *testing.T) {
	t.Parallel()
	listener := rule("listener", admin.AccessRightListen)
	speaker := rule("speaker", admin.AccessRightSend)
	manager := rule("manager",
		admin.AccessRightManage, admin.AccessRightSend, admin.AccessRightListen)
	endpoint := secured(t)
	administrator := endpoint.administrator(t)
	administrator.createQueue("s266", &admin.QueueProperties{
		AuthorizationRules: []admin.AuthorizationRule{listener, speaker, manager},
	})
	administrator.createQueue("s266b", nil)

	sends := endpoint.with(t, "speaker", *speaker.PrimaryKey)
	sends.sendNumbered("s266", 3)
	sender := sends.sender("s266")
	sender.cancel(sender.schedule(later(time.Hour), text(4))...)
	sends.deniedReceiving("s266")

	listens := endpoint.with(t, "listener", *listener.SecondaryKey)
	receiver := listens.receiver("s266")
	b := receiver.b
	b.same(bodies(receiver.peekAll()), texts(1, 3))
	messages := receiver.receive(3)
	receiver.complete(messages[0])
	receiver.postpone(messages[1])
	receiver.bury(messages[2])
	receiver.complete(receiver.ask(2)...)
	b.same(bodies(listens.deadLetters("s266").receive(1)), []string{"3"})
	listens.deniedSending("s266")

	endpoint.with(t, "manager", *manager.PrimaryKey).roundTrip("s266")
	for _, other := range []*bench{
		endpoint.with(t, "manager", *manager.PrimaryKey), endpoint.with(t, "speaker", *speaker.PrimaryKey),
	} {
		other.denied("s266b")
	}
	endpoint.with(t, "speaker", *listener.PrimaryKey).denied("s266")
}

func TestS267_keys_of_a_topic_are_good_for_its_subscriptions(t *testing.T) {
	t.Parallel()
	listener := rule("listener", admin.AccessRightListen)
	speaker := rule("speaker", admin.AccessRightSend)
	endpoint := secured(t)
	administrator := endpoint.administrator(t)
	administrator.createTopic("s267", &admin.TopicProperties{
		AuthorizationRules: []admin.AuthorizationRule{listener, speaker},
	})
	administrator.createSubscription("s267", "a", nil)
	sends := endpoint.with(t, "speaker", *speaker.PrimaryKey)
	sends.send("s267", text(1))
	sends.deniedReceiving("s267/a")
	listens := endpoint.with(t, "listener", *listener.PrimaryKey)
	listens.same(bodies(listens.receiver("s267/a").receive(1)), []string{"1"})
	listens.deniedSending("s267")
}

func TestS268_a_key_that_was_replaced_opens_nothing_more(t *testing.T) {
	t.Parallel()
	before := rule("speaker", admin.AccessRightSend)
	after := before
	after.PrimaryKey, after.SecondaryKey = before.SecondaryKey, rule("other").PrimaryKey
	endpoint := secured(t)
	administrator := endpoint.administrator(t)
	made := administrator.createQueue("s268", &admin.QueueProperties{
		AuthorizationRules: []admin.AuthorizationRule{before},
	})
	endpoint.with(t, "speaker", *before.PrimaryKey).send("s268", text(1))
	made.AuthorizationRules = []admin.AuthorizationRule{after}
	administrator.updateQueue("s268", made)
	endpoint.with(t, "speaker", *before.PrimaryKey).deniedSending("s268")
	endpoint.with(t, "speaker", *before.SecondaryKey).send("s268", text(2))
	reader := endpoint.with(t, rootName, endpoint.key)
	reader.same(bodies(reader.receiver("s268").receive(2)), texts(1, 2))
}

func TestS269_the_emulators_connection_string_is_verified_too(t *testing.T) {
	t.Parallel()
	endpoint := secured(t)
	endpoint.administrator(t).createQueue("s269", nil)
	emulator := ";UseDevelopmentEmulator=true"
	connectWith(t, keyedString(endpoint.amqp, rootName, endpoint.key)+emulator, nil).roundTrip("s269")
	connectWith(t, keyedString(endpoint.amqp, rootName, "SAS_KEY_VALUE")+emulator, nil).denied("s269")
	// Where no key is verified any key is good.
	open(t).administrator(t).createQueue("s269", nil)
	connectWith(t, keyedString(open(t).amqp, "any", "key")+emulator, nil).roundTrip("s269")
}

func TestS287_administration_needs_the_right_to_manage(t *testing.T) {
	t.Parallel()
	endpoint := secured(t)
	speaker := rule("speaker", admin.AccessRightSend, admin.AccessRightListen)
	endpoint.administrator(t).createQueue("s287", &admin.QueueProperties{
		AuthorizationRules: []admin.AuthorizationRule{speaker},
	})
	for _, text := range []string{
		keyedString(endpoint.amqp, rootName, "wrong"), keyedString(endpoint.amqp, "no-such-name", endpoint.key),
		keyedString(endpoint.amqp, "speaker", *speaker.PrimaryKey),
		keyedString(endpoint.amqp, "listener", listenerKey),
	} {
		o := endpoint.administratorWith(t, text, over(endpoint.trust(t)))
		o.status(o.tryCreateQueue("s287b", nil), http.StatusUnauthorized, "")
		o.status(o.tryDeleteQueue("s287"), http.StatusUnauthorized, "")
		limit, cancel := within(deadline)
		_, err := o.admin.GetQueue(limit, "s287", nil)
		cancel()
		o.status(err, http.StatusUnauthorized, "")
	}
	endpoint.administrator(t).queue("s287")
}
