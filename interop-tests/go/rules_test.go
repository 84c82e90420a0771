package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// row is a message of S162, and which subscriptions get it (../scenarios.md).
type row struct {
	subject    string
	id         string
	properties map[string]any
	at         string
}

var table = []row{
	{"subject", "m-1", map[string]any{"color": "red", "size": 1},
		"eq in like exists or math sys user keyword"},
	{"other", "m-2", map[string]any{"color": "red", "size": 5}, "eq between in like exists paren user"},
	{"subject", "x-3", map[string]any{"color": "green", "size": 10}, "ne between in exists paren"},
	{"", "m-4", map[string]any{"color": "blue", "size": 11, "urgent": true},
		"ne gt notin exists or paren bool"},
	{"", "m-5", map[string]any{"size": 1, "urgent": false}, "isnull exists or math"},
	{"", "m-6", map[string]any{"color": "Red", "note": "50% off"}, "ne notin escape paren"},
	{"", "m-7", map[string]any{"note": "500", "strange name": 1}, "isnull quoted"},
	{"", "m-8", map[string]any{"color": "rust", "size": "20"}, "ne notin like exists paren"},
}

const subscriptionsOfTable = "eq ne gt between in notin like escape isnull exists or paren math bool " +
	"quoted sys user keyword"

// having is a message with these application properties.
func having(properties map[string]any, body any) *message {
	each := text(body)
	each.ApplicationProperties = properties
	return each
}

// held is what a subscription has. A publish is whole when it is acknowledged: there is nothing to wait for.
func (b *bench) held(subscription string) []*received {
	b.Helper()
	return b.receiver(subscription).peekAll()
}

func TestS161_a_rule_takes_all_or_none_and_no_rule_in_the_file_takes_all(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s161", 2)
	b.same(bodies(b.held("s161/all")), texts(1, 2))
	b.same(bodies(b.held("s161/every")), texts(1, 2))
	b.same(bodies(b.held("s161/none")), []string{})
}

func TestS162_sql_filters_take_what_they_say(t *testing.T) {
	b := begin(t)
	sender := b.sender("s162")
	for index, each := range table {
		sent := having(each.properties, index+1)
		sent.MessageID = &each.id
		if each.subject != "" {
			sent.Subject = &each.subject
		}
		sender.send(sent)
	}
	for _, subscription := range strings.Fields(subscriptionsOfTable) {
		wanted := []string{subscription}
		for index, each := range table {
			if slices.Contains(strings.Fields(each.at), subscription) {
				wanted = append(wanted, fmt.Sprint(index+1))
			}
		}
		found := append([]string{subscription}, bodies(b.held("s162/"+subscription))...)
		b.same(found, wanted)
	}
}

// filled is a message with a value for everything that a correlation filter can name.
func filled(properties map[string]any, values [8]string, body any) *message {
	each := having(properties, body)
	each.CorrelationID, each.Subject, each.MessageID, each.To = &values[0], &values[1], &values[2], &values[3]
	each.ReplyTo, each.ReplyToSessionID, each.SessionID = &values[4], &values[5], &values[6]
	each.ContentType = &values[7]
	return each
}

func TestS163_correlation_filters_compare_with_case_and_type(t *testing.T) {
	b := begin(t)
	b.sender("s163").sendBatch(
		filled(map[string]any{"color": "red", "size": 1},
			[8]string{"c1", "s1", "m1", "t1", "r1", "rs1", "x1", "text/plain"}, 1),
		filled(map[string]any{"color": "blue", "size": 2},
			[8]string{"o", "o", "o", "o", "o", "o", "o", "o"}, 2),
		text(3),
		titled("S1", having(map[string]any{"color": "red", "size": "1"}, 4)))
	for _, subscription := range strings.Fields("id label mid to reply rsid sid type prop both") {
		wanted := []string{subscription, "1"}
		if subscription == "prop" {
			wanted = append(wanted, "4")
		}
		found := append([]string{subscription}, bodies(b.held("s163/"+subscription))...)
		b.same(found, wanted)
	}
}

func TestS164_an_action_changes_the_copy_and_no_other(t *testing.T) {
	b := begin(t)
	properties := map[string]any{"n": int64(1), "secret": "x"}
	b.send("s164", titled("s", having(properties, 1)))
	changed := b.held("s164/act")[0]
	b.same(said(changed.Subject), "changed")
	found := changed.ApplicationProperties
	b.same(found["urgent"], "yes")
	b.same(fmt.Sprint(found["n"]), "2")
	b.same(found["RuleName"], "change")
	_, isThere := found["secret"]
	b.same(isThere, false)
	plain := b.held("s164/plain")[0]
	b.same(said(plain.Subject), "s")
	b.same(plain.ApplicationProperties, properties)
}

func TestS165_rules_without_actions_make_one_copy_and_each_with_an_action_one_more(t *testing.T) {
	b := begin(t)
	b.send("s165", with("n", 1), with("n", 2))
	copies := b.held("s165/five")
	b.same(bodies(copies), []string{"1", "1", "1", "2"})
	b.same(numbers(copies), span(1, 4))
	b.same(origins(copies), []int64{1, 1, 1, 2})
	var sources []string
	for _, each := range copies {
		properties := each.ApplicationProperties
		sources = append(sources, fmt.Sprint(properties["source"], " ", properties["RuleName"]))
	}
	b.same(sorted(sources[:3]), []string{"<nil> <nil>", "r4 r4", "r5 r5"})
	b.same(sources[3], "<nil> <nil>")
}

func TestS166_of_a_batch_those_that_match(t *testing.T) {
	b := begin(t)
	b.sender("s166").sendBatch(titled("first", with("n", 1)), with("n", 2),
		titled("third", with("n", 1)), text("none"))
	messages := b.receiver("s166/some").receive(2)
	b.same(subjects(messages), []string{"first", "third"})
	b.same(numbers(messages), span(1, 2))
}

func TestS167_an_error_of_a_filter_makes_a_dead_letter_where_that_is_wanted(t *testing.T) {
	b := begin(t)
	b.sender("s167").sendBatch(with("n", 2), with("n", 0), text("none"))
	b.same(bodies(b.held("s167/strict")), []string{"2"})
	b.same(bodies(b.held("s167/lax")), []string{"2"})
	letters := b.deadLetters("s167/strict").peekAll()
	b.same(bodies(letters), []string{"0"})
	b.same(*letters[0].DeadLetterReason == "", false)
	b.same(*letters[0].DeadLetterErrorDescription == "", false)
	b.same(bodies(b.deadLetters("s167/lax").peekAll()), []string{})
}

func TestS172_an_action_moves_a_message_to_another_session(t *testing.T) {
	b := begin(t)
	b.send("s172", inSession("x", 1))
	messages := b.session("s172/s", "moved").receive(1)
	b.same(bodies(messages), []string{"1"})
	b.same(sessionIDs(messages), []string{"moved"})
}
