package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSenderAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** The SDK's asynchronous clients: what is called here is what the blocking ones do not call. */
class Streams extends Scenarios {
    private ServiceBusSenderAsyncClient sender(String queue) {
        return client.keep(client.builder().sender().queueName(queue).buildAsyncClient());
    }

    private ServiceBusReceiverAsyncClient receiver(String queue) {
        return client.keep(client.receivers(queue).disableAutoComplete().buildAsyncClient());
    }

    /** What comes by a stream that stays open as long as the scenario: when it is closed, so is its link. */
    private Work work(ServiceBusReceiverAsyncClient receiver) {
        Work work = new Work();
        Disposable stream = receiver.receiveMessages().subscribe(work::add);
        client.keep(stream::dispose);
        return work;
    }

    @Test
    void s319_a_stream_goes_on_after_its_fiftieth_message() throws Exception {
        ServiceBusSenderAsyncClient sender = sender("s319");
        sender.sendMessages(numbered(50)).block(DEADLINE);
        ServiceBusReceiverAsyncClient receiver = receiver("s319");
        Work work = new Work();
        Disposable stream = receiver.receiveMessages()
            .concatMap(message -> receiver.complete(message).thenReturn(message))
            .subscribe(work::add);
        work.await(50, DEADLINE);
        sender.sendMessage(message(51)).block(DEADLINE);
        work.await(51, DEADLINE);
        assertEquals(texts(1, 51), work.bodies());
        stream.dispose();
        assertEquals(List.of(), peekAll(client.receiver("s319")));
    }

    /** A stream completes what its subscriber has taken, unless it is told not to; and ends when nobody subscribes. */
    @Test
    void s319_a_stream_completes_by_itself() {
        sender("s319b").sendMessages(numbered(20)).block(DEADLINE);
        ServiceBusReceiverAsyncClient receiver = client.keep(client.receivers("s319b").buildAsyncClient());
        assertEquals(texts(1, 20), bodies(receiver.receiveMessages().take(20).collectList().block(DEADLINE)));
        long begin = System.nanoTime();
        while (!peekAll(client.receiver("s319b")).isEmpty()) {
            assertFalse(secondsSince(begin) > DEADLINE.toSeconds());
        }
    }

    @Test
    void s319_every_call_of_the_asynchronous_clients() throws Exception {
        ServiceBusSenderAsyncClient sender = sender("s319c");
        sender.createMessageBatch().flatMap(batch -> {
            numbered(6).forEach(batch::tryAddMessage);
            return sender.sendMessages(batch);
        }).block(DEADLINE);
        ServiceBusReceiverAsyncClient receiver = receiver("s319c");
        assertEquals(texts(1, 6), bodies(receiver.peekMessages(10).collectList().block(DEADLINE)));
        Work work = work(receiver);
        work.await(6, DEADLINE);
        List<ServiceBusReceivedMessage> six = work.messages().subList(0, 6);
        assertEquals(texts(1, 6), bodies(six));
        receiver.complete(six.get(0)).block(DEADLINE);
        receiver.defer(six.get(1)).block(DEADLINE);
        receiver.deadLetter(six.get(2), new DeadLetterOptions().setDeadLetterReason("why")).block(DEADLINE);
        receiver.abandon(six.get(3), new AbandonOptions().setPropertiesToModify(Map.of("attempt", 1))).block(DEADLINE);
        receiver.renewMessageLock(six.get(4)).block(DEADLINE);
        receiver.complete(six.get(4)).block(DEADLINE);
        ServiceBusReceivedMessage deferred =
            receiver.receiveDeferredMessage(six.get(1).getSequenceNumber()).block(DEADLINE);
        assertEquals("2", deferred.getBody().toString());
        receiver.complete(deferred).block(DEADLINE);
        work.await(7, DEADLINE);
        ServiceBusReceivedMessage abandoned = work.messages().get(6);
        assertEquals("4", abandoned.getBody().toString());
        assertEquals(1, abandoned.getApplicationProperties().get("attempt"));
        ServiceBusReceiverAsyncClient dead = client.keep(client.receivers("s319c").subQueue(SubQueue.DEAD_LETTER_QUEUE)
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildAsyncClient());
        assertEquals("why", dead.receiveMessages().blockFirst(DEADLINE).getDeadLetterReason());

        long number = sender.scheduleMessage(message("later"), in(Duration.ofHours(1))).block(DEADLINE);
        sender.cancelScheduledMessage(number).block(DEADLINE);
        assertEquals(texts(4, 4), bodies(peekAll(client.receiver("s319c"))).stream()
            .filter(body -> !body.equals("6")).toList());
    }

    @Test
    void s319_a_transaction_of_the_asynchronous_clients() throws Exception {
        ServiceBusSenderAsyncClient sender = sender("s319d");
        sender.sendMessage(message(1)).block(DEADLINE);
        ServiceBusReceiverAsyncClient receiver = receiver("s319d");
        Work work = work(receiver);
        work.await(1, DEADLINE);
        ServiceBusReceivedMessage message = work.messages().get(0);
        ServiceBusTransactionContext transaction = receiver.createTransaction().block(DEADLINE);
        receiver.complete(message, new CompleteOptions().setTransactionContext(transaction)).block(DEADLINE);
        sender.sendMessage(message(2), transaction).block(DEADLINE);
        assertEquals(texts(1, 1), bodies(peekAll(client.receiver("s319d"))));
        receiver.commitTransaction(transaction).block(DEADLINE);
        assertEquals(texts(2, 2), bodies(peekAll(client.receiver("s319d"))));
    }

    @Test
    void s319_sessions_of_the_asynchronous_clients() {
        sender("s319s").sendMessages(IntStream.rangeClosed(1, 10).mapToObj(n -> inSession("x", String.valueOf(n)))
            .toList()).block(DEADLINE);
        ServiceBusSessionReceiverAsyncClient acceptor =
            client.keep(client.sessionReceivers("s319s").disableAutoComplete().buildAsyncClient());
        List<ServiceBusReceivedMessage> messages = Flux.usingWhen(acceptor.acceptNextSession(),
            receiver -> receiver.setSessionState(new byte[] {1}).thenMany(receiver.receiveMessages())
                .concatMap(message -> receiver.complete(message).thenReturn(message)).take(10),
            receiver -> Mono.fromRunnable(receiver::close).subscribeOn(Schedulers.boundedElastic()))
            .collectList().block(DEADLINE);
        assertEquals(texts(1, 10), bodies(messages));
        assertEquals(1, connect().session("s319s", "x").getSessionState()[0]);
    }
}
