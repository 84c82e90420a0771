package interop

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// faultProxy is the process of ../fault_proxy.py, between a client and the broker.
type faultProxy struct {
	b       *bench
	port    string
	orders  io.Writer
	answers *bufio.Scanner
}

// through connects a scenario to the broker through a fault proxy of its own.
func through(t *testing.T) (*bench, *faultProxy) {
	t.Helper()
	t.Parallel()
	// The runner's Python, and the tool beside its broker's.
	words := strings.Fields(environment(t, "JITNEY_BROKER_CONTROL"))
	limit, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(limit, words[0], filepath.Join(filepath.Dir(words[1]), "fault_proxy.py"), environment(t, "JITNEY_AMQP_PORT"))
	command.Stderr = os.Stderr
	b := &bench{T: t}
	orders, err := command.StdinPipe()
	b.must(err)
	answers, err := command.StdoutPipe()
	b.must(err)
	b.must(command.Start())
	t.Cleanup(func() {
		// It ends when its input does; what does not end in time is killed.
		_ = orders.Close()
		timer := time.AfterFunc(deadline, cancel)
		_ = command.Wait()
		timer.Stop()
		cancel()
	})
	way := &faultProxy{b: b, orders: orders, answers: bufio.NewScanner(answers)}
	way.port = way.answer()
	text := strings.Replace(environment(t, "JITNEY_CONNECTION_STRING"), ":"+environment(t, "JITNEY_AMQP_PORT"), ":"+way.port, 1)
	return connectWith(t, text, nil), way
}

func (w *faultProxy) answer() string {
	w.b.Helper()
	if !w.answers.Scan() {
		w.b.Fatalf("fault_proxy.py says nothing: %v", w.answers.Err())
	}
	return w.answers.Text()
}

// does gives an order, which must concern so many links or connections at least.
func (w *faultProxy) does(order string, least int) {
	w.b.Helper()
	_, err := io.WriteString(w.orders, order+"\n")
	w.b.must(err)
	found, err := strconv.Atoi(w.answer())
	w.b.must(err)
	if found < least {
		w.b.Fatalf("%s concerned %d", order, found)
	}
}

// outlives checks that a sender and a receiver, used already, go on after something has happened to them.
func (b *bench) outlives(queue string, happens func()) {
	b.Helper()
	sender, receiver := b.sender(queue), b.receiver(queue)
	sender.send(text("before"))
	receiver.complete(receiver.one())
	happens()
	sender.send(text("after"))
	each := receiver.one()
	b.same(string(each.Body), "after")
	receiver.complete(each)
	receiver.nothing()
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS301_links_that_are_detached_by_force_are_made_anew(t *testing.T) {
	b, way := through(t)
	b.outlives("s301", func() { way.does("detach s301", 2) })
}

func TestS302_a_receive_that_waits_outlives_its_link(t *testing.T) {
	b, way := through(t)
	receiver := b.receiver("s302")
	b.send("s302", text("before"))
	receiver.complete(receiver.one())
	arrived := make(chan []*received, 1)
	limit, cancel := within(15 * time.Second)
	defer cancel()
	go func() {
		var messages []*received
		for len(messages) == 0 && limit.Err() == nil {
			messages, _ = receiver.inner.ReceiveMessages(limit, 1, nil)
		}
		arrived <- messages
	}()
	way.does("detach s302", 1)
	connect(t).send("s302", text("after"))
	b.same(bodies(<-arrived), []string{"after"})
}

func TestS303_a_message_whose_link_is_gone_is_completed_or_comes_again(t *testing.T) {
	b, way := through(t)
	b.send("s303", text("once"))
	receiver := b.receiver("s303")
	each := receiver.one()
	way.does("detach s303", 1)
	if err := receiver.tryComplete(each); err != nil {
		b.Log("it comes again, for: ", err)
		again := receiver.one()
		b.same(count(again), 1)
		receiver.complete(again)
	}
	receiver.nothing()
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS304_a_session_whose_link_is_gone_is_lost(t *testing.T) {
	b, way := through(t)
	b.send("s304", inSession("x", 1), inSession("x", 2))
	held := b.session("s304", "x")
	each := held.one()
	way.does("detach s304", 1)
	if err := held.tryComplete(each); err == nil {
		b.Fatal("what was received by a link that is gone was completed")
	}
	// The SDK accepts the session again by itself, for whatever else is asked of it.
	b.same(held.state(), []byte(nil))
	held.close()
	anew := connect(t).freed("s304", "x", 5*time.Second)
	b.same(bodies(anew.receive(2)), []string{"1", "2"})
}

func TestS305_a_connection_that_is_closed_by_force_is_made_anew(t *testing.T) {
	b, way := through(t)
	b.outlives("s305", func() { way.does("close", 1) })
}

func TestS306_a_connection_that_is_cut_is_made_anew(t *testing.T) {
	b, way := through(t)
	b.outlives("s306", func() { way.does("cut", 1) })
}

func TestS307_a_send_that_gets_no_answer_times_out(t *testing.T) {
	b, way := through(t)
	sender := b.sender("s307")
	sender.send(text("before"))
	way.does("hold", 1)
	limit, cancel := within(3 * time.Second)
	defer cancel()
	start := time.Now()
	err := sender.inner.SendMessage(limit, text("held"), nil)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 15*time.Second {
		b.Fatalf("after %v: %v", time.Since(start), err)
	}
	way.does("release", 1)
	sender.send(text("after"))
	receiver := connect(t).deleting("s307")
	b.same(string(receiver.one().Body), "before")
	var rest []string
	for len(rest) == 0 || rest[len(rest)-1] != "after" {
		rest = append(rest, string(receiver.one().Body))
	}
	if len(rest) > 1 {
		b.same(rest, []string{"held", "after"})
	}
	receiver.nothing()
}

func TestS308_senders_and_receivers_outlive_a_broker_that_stops_in_good_order(t *testing.T) {
	b := connect(t)
	b.outlives("s308", func() {
		control(t, "stop")
		control(t, "start")
	})
}

// misused tells what came of a call on what is settled already.
func (r *receiver) misused(each *received) map[string]error {
	limit, cancel := within(deadline)
	defer cancel()
	return map[string]error{
		"complete":    r.inner.CompleteMessage(limit, each, nil),
		"abandon":     r.inner.AbandonMessage(limit, each, nil),
		"defer":       r.inner.DeferMessage(limit, each, nil),
		"dead-letter": r.inner.DeadLetterMessage(limit, each, nil),
	}
}

func TestS327_what_is_settled_cannot_be_settled_again(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s327", 2)
	receiver := b.receiver("s327")
	messages := receiver.receive(2)
	receiver.complete(messages[0])
	receiver.abandon(messages[1])
	// Of what it has settled itself the SDK says nothing, and does nothing; asked by the lock's token alone, the broker says so.
	elsewhere := b.another().receiver("s327")
	for _, each := range messages {
		for how, err := range receiver.misused(each) {
			b.Log(how)
			b.must(err)
		}
		for how, err := range elsewhere.misused(&received{LockToken: each.LockToken}) {
			b.Log(how, " elsewhere")
			b.code(err, azservicebus.CodeLockLost)
		}
	}
	again := receiver.one()
	b.same(string(again.Body), "2")
	b.same(count(again), 1)
	receiver.complete(again)
	b.same(bodies(receiver.peekAll()), []string{})
	b.same(bodies(b.deadLetters("s327").peekAll()), []string{})
}
