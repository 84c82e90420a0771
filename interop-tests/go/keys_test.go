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
	place := guarded(t)
	place.administrator(t).createQueue("s264", nil)
	place.with(t, rootName, "wrong").denied("s264")
	place.with(t, "no-such-name", place.key).denied("s264")
	place.with(t, rootName, place.key).roundTrip("s264")
	sends, listens := place.with(t, "speaker", speakerKey), place.with(t, "listener", listenerKey)
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
	place := guarded(t)
	for _, name := range []string{"s265", "s265b"} {
		place.administrator(t).createQueue(name, nil)
	}
	soon := time.Now().Add(time.Hour)
	whole := "sb://" + place.amqp + "/"
	// The namespace, in the ways that clients write it; the SDK's own tests sign the bare host.
	for _, resource := range []string{whole, "amqps://" + place.amqp, "https://localhost", place.amqp} {
		place.bearing(t, signed(resource, rootName, place.key, soon)).roundTrip("s265")
	}
	own := place.bearing(t, signed(whole+"s265", rootName, place.key, soon))
	own.roundTrip("s265")
	own.denied("s265b")
	for _, signature := range []string{
		signed(whole, rootName, place.key, time.Now().Add(-time.Hour)),
		signed(whole, rootName, "wrong", soon),
		strings.Replace(signed(whole, rootName, place.key, soon), "&se=", "&se=1", 1),
		"SharedAccessSignature sr=nonsense",
	} {
		place.bearing(t, signature).denied("s265")
	}
}

func TestS265_a_link_ends_with_its_signature(t *testing.T) {
	t.Parallel()
	place := guarded(t)
	place.administrator(t).createQueue("s265c", nil)
	resource := "sb://" + place.amqp + "/s265c"
	b := place.bearing(t, signed(resource, rootName, place.key, time.Now().Add(4*time.Second)))
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
	place := guarded(t)
	office := place.administrator(t)
	office.createQueue("s266", &admin.QueueProperties{
		AuthorizationRules: []admin.AuthorizationRule{listener, speaker, manager},
	})
	office.createQueue("s266b", nil)

	sends := place.with(t, "speaker", *speaker.PrimaryKey)
	sends.sendNumbered("s266", 3)
	sender := sends.sender("s266")
	sender.cancel(sender.schedule(later(time.Hour), text(4))...)
	sends.deniedReceiving("s266")

	listens := place.with(t, "listener", *listener.SecondaryKey)
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

	place.with(t, "manager", *manager.PrimaryKey).roundTrip("s266")
	for _, other := range []*bench{
		place.with(t, "manager", *manager.PrimaryKey), place.with(t, "speaker", *speaker.PrimaryKey),
	} {
		other.denied("s266b")
	}
	place.with(t, "speaker", *listener.PrimaryKey).denied("s266")
}

func TestS267_keys_of_a_topic_are_good_for_its_subscriptions(t *testing.T) {
	t.Parallel()
	listener := rule("listener", admin.AccessRightListen)
	speaker := rule("speaker", admin.AccessRightSend)
	place := guarded(t)
	office := place.administrator(t)
	office.createTopic("s267", &admin.TopicProperties{
		AuthorizationRules: []admin.AuthorizationRule{listener, speaker},
	})
	office.createSubscription("s267", "a", nil)
	sends := place.with(t, "speaker", *speaker.PrimaryKey)
	sends.send("s267", text(1))
	sends.deniedReceiving("s267/a")
	listens := place.with(t, "listener", *listener.PrimaryKey)
	listens.same(bodies(listens.receiver("s267/a").receive(1)), []string{"1"})
	listens.deniedSending("s267")
}

func TestS268_a_key_that_was_replaced_opens_nothing_more(t *testing.T) {
	t.Parallel()
	before := rule("speaker", admin.AccessRightSend)
	after := before
	after.PrimaryKey, after.SecondaryKey = before.SecondaryKey, rule("other").PrimaryKey
	place := guarded(t)
	office := place.administrator(t)
	made := office.createQueue("s268", &admin.QueueProperties{
		AuthorizationRules: []admin.AuthorizationRule{before},
	})
	place.with(t, "speaker", *before.PrimaryKey).send("s268", text(1))
	made.AuthorizationRules = []admin.AuthorizationRule{after}
	office.updateQueue("s268", made)
	place.with(t, "speaker", *before.PrimaryKey).deniedSending("s268")
	place.with(t, "speaker", *before.SecondaryKey).send("s268", text(2))
	reader := place.with(t, rootName, place.key)
	reader.same(bodies(reader.receiver("s268").receive(2)), texts(1, 2))
}

func TestS269_the_emulators_connection_string_is_verified_too(t *testing.T) {
	t.Parallel()
	place := guarded(t)
	place.administrator(t).createQueue("s269", nil)
	emulator := ";UseDevelopmentEmulator=true"
	connectWith(t, keyedString(place.amqp, rootName, place.key)+emulator, nil).roundTrip("s269")
	connectWith(t, keyedString(place.amqp, rootName, "SAS_KEY_VALUE")+emulator, nil).denied("s269")
	// Where no key is verified any key is good.
	open(t).administrator(t).createQueue("s269", nil)
	connectWith(t, keyedString(open(t).amqp, "any", "key")+emulator, nil).roundTrip("s269")
}

func TestS287_administration_needs_the_right_to_manage(t *testing.T) {
	t.Parallel()
	place := guarded(t)
	speaker := rule("speaker", admin.AccessRightSend, admin.AccessRightListen)
	place.administrator(t).createQueue("s287", &admin.QueueProperties{
		AuthorizationRules: []admin.AuthorizationRule{speaker},
	})
	for _, text := range []string{
		keyedString(place.amqp, rootName, "wrong"), keyedString(place.amqp, "no-such-name", place.key),
		keyedString(place.amqp, "speaker", *speaker.PrimaryKey),
		keyedString(place.amqp, "listener", listenerKey),
	} {
		o := place.administratorWith(t, text, over(place.trust(t)))
		o.status(o.tryCreateQueue("s287b", nil), http.StatusUnauthorized, "")
		o.status(o.tryDeleteQueue("s287"), http.StatusUnauthorized, "")
		limit, cancel := within(deadline)
		_, err := o.admin.GetQueue(limit, "s287", nil)
		cancel()
		o.status(err, http.StatusUnauthorized, "")
	}
	place.administrator(t).queue("s287")
}
