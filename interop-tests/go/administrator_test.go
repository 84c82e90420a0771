package interop

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// administrator has the calls of the SDK's administration client; a failure ends the scenario.
type administrator struct {
	*bench
	admin *admin.Client
}

func administrating(t *testing.T, text string, transport policy.Transporter) *admin.Client {
	t.Helper()
	client, err := admin.NewClientFromConnectionString(text, &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: transport},
	})
	if err != nil {
		t.Fatalf("no administrator: %v", err)
	}
	return client
}

// plainly sends by plain HTTP what the SDK means for HTTPS: the way to the emulator's own port.
type plainly struct {
	address string
}

func (p plainly) Do(request *http.Request) (*http.Response, error) {
	request.URL.Scheme, request.URL.Host = "http", p.address
	return over(nil).Do(request)
}

func (o *administrator) createQueue(name string, properties *admin.QueueProperties) admin.QueueProperties {
	o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	made, err := o.admin.CreateQueue(limit, name, &admin.CreateQueueOptions{Properties: properties})
	o.must(err)
	return made.QueueProperties
}

func (o *administrator) tryCreateQueue(name string, properties *admin.QueueProperties) error {
	limit, cancel := within(deadline)
	defer cancel()
	_, err := o.admin.CreateQueue(limit, name, &admin.CreateQueueOptions{Properties: properties})
	return err
}

func (o *administrator) tryUpdateQueue(name string, properties admin.QueueProperties) error {
	limit, cancel := within(deadline)
	defer cancel()
	_, err := o.admin.UpdateQueue(limit, name, properties, nil)
	return err
}

func (o *administrator) updateQueue(name string, properties admin.QueueProperties) admin.QueueProperties {
	o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	made, err := o.admin.UpdateQueue(limit, name, properties, nil)
	o.must(err)
	return made.QueueProperties
}

// queue is what is told of a queue; the scenario ends when there is none.
func (o *administrator) queue(name string) admin.QueueProperties {
	o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	found, err := o.admin.GetQueue(limit, name, nil)
	o.must(err)
	if found == nil {
		o.Fatalf("there is no queue %s", name)
	}
	return found.QueueProperties
}

func (o *administrator) queueCounts(name string) admin.QueueRuntimeProperties {
	o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	found, err := o.admin.GetQueueRuntimeProperties(limit, name, nil)
	o.must(err)
	if found == nil {
		o.Fatalf("there is no queue %s", name)
	}
	return found.QueueRuntimeProperties
}

func (o *administrator) tryDeleteQueue(name string) error {
	limit, cancel := within(deadline)
	defer cancel()
	_, err := o.admin.DeleteQueue(limit, name, nil)
	return err
}

func (o *administrator) tryCreateTopic(name string, properties *admin.TopicProperties) error {
	limit, cancel := within(deadline)
	defer cancel()
	_, err := o.admin.CreateTopic(limit, name, &admin.CreateTopicOptions{Properties: properties})
	return err
}

func (o *administrator) createTopic(name string, properties *admin.TopicProperties) admin.TopicProperties {
	o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	made, err := o.admin.CreateTopic(limit, name, &admin.CreateTopicOptions{Properties: properties})
	o.must(err)
	return made.TopicProperties
}

func (o *administrator) topic(name string) admin.TopicProperties {
	o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	found, err := o.admin.GetTopic(limit, name, nil)
	o.must(err)
	if found == nil {
		o.Fatalf("there is no topic %s", name)
	}
	return found.TopicProperties
}

func (o *administrator) tryCreateSubscription(
	topic, name string, properties *admin.SubscriptionProperties,
) (admin.SubscriptionProperties, error) {
	limit, cancel := within(deadline)
	defer cancel()
	made, err := o.admin.CreateSubscription(limit, topic, name,
		&admin.CreateSubscriptionOptions{Properties: properties})
	return made.SubscriptionProperties, err
}

func (o *administrator) createSubscription(
	topic, name string, properties *admin.SubscriptionProperties,
) admin.SubscriptionProperties {
	o.Helper()
	made, err := o.tryCreateSubscription(topic, name, properties)
	o.must(err)
	return made
}

func (o *administrator) subscription(topic, name string) admin.SubscriptionProperties {
	o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	found, err := o.admin.GetSubscription(limit, topic, name, nil)
	o.must(err)
	if found == nil {
		o.Fatalf("there is no subscription %s/%s", topic, name)
	}
	return found.SubscriptionProperties
}

// rulebook is a subscription's rules under an administrator's hand.
type rulebook struct {
	o            *administrator
	topic        string
	subscription string
}

func (o *administrator) rules(entity string) *rulebook {
	topic, subscription, _ := strings.Cut(entity, "/")
	return &rulebook{o, topic, subscription}
}

func (r *rulebook) tryCreate(name string, filter admin.RuleFilter, action admin.RuleAction) error {
	limit, cancel := within(deadline)
	defer cancel()
	options := admin.CreateRuleOptions{Filter: filter, Action: action}
	if name != "" {
		options.Name = &name
	}
	_, err := r.o.admin.CreateRule(limit, r.topic, r.subscription, &options)
	return err
}

func (r *rulebook) create(name string, filter admin.RuleFilter, action admin.RuleAction) {
	r.o.Helper()
	r.o.must(r.tryCreate(name, filter, action))
}

func (r *rulebook) get(name string) *admin.GetRuleResponse {
	r.o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	found, err := r.o.admin.GetRule(limit, r.topic, r.subscription, name, nil)
	r.o.must(err)
	return found
}

func (r *rulebook) tryDelete(name string) error {
	limit, cancel := within(deadline)
	defer cancel()
	_, err := r.o.admin.DeleteRule(limit, r.topic, r.subscription, name, nil)
	return err
}

func (r *rulebook) delete(name string) {
	r.o.Helper()
	r.o.must(r.tryDelete(name))
}

// list is all rules by name, in pages of a size (0 for the broker's own), and the number of pages.
func (r *rulebook) list(size int32) (map[string]admin.RuleProperties, int) {
	r.o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	found, pages := map[string]admin.RuleProperties{}, 0
	pager := r.o.admin.NewListRulesPager(r.topic, r.subscription, &admin.ListRulesOptions{MaxPageSize: size})
	for ; pager.More(); pages++ {
		page, err := pager.NextPage(limit)
		r.o.must(err)
		for _, each := range page.Rules {
			if _, isTwice := found[each.Name]; isTwice {
				r.o.Fatalf("rule %s is listed twice", each.Name)
			}
			found[each.Name] = each
		}
	}
	return found, pages
}

// status checks the HTTP status of a refusal, and a text in what is told.
func (o *administrator) status(err error, wanted int, text string) {
	o.Helper()
	var found *azcore.ResponseError
	if !errors.As(err, &found) || found.StatusCode != wanted || !strings.Contains(err.Error(), text) {
		o.Fatalf("wanted status %d and %q, got %v", wanted, text, err)
	}
}

func of[T any](value T) *T {
	return &value
}

// rule is an authorization rule, whose keys are made of its name.
func rule(name string, rights ...admin.AccessRight) admin.AuthorizationRule {
	key := func(which string) *string {
		hash := sha256.Sum256([]byte(name + which))
		text := base64.StdEncoding.EncodeToString(hash[:])
		return &text
	}
	return admin.AuthorizationRule{
		KeyName: &name, AccessRights: rights, PrimaryKey: key("primary"), SecondaryKey: key("secondary"),
	}
}
