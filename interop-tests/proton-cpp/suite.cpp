// The scenarios of ../scenarios.md that a client of links can do, with Proton's C++ client as it is.
#include "client.hpp"

#include <proton/codec/encoder.hpp>
#include <proton/source_options.hpp>
#include <proton/ssl.hpp>
#include <proton/types.hpp>

#include <cstdlib>
#include <iostream>
#include <limits>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>

namespace {

using State = enum proton::transfer::state;
using Messages = std::vector<Received>;

std::string environment(const char *name) {
    const char *text = std::getenv(name);
    if (!text) throw Failure(std::string(name) + " is not set");
    return text;
}

std::string url(const std::string &scheme = "amqp") { return scheme + "://localhost:" + environment("JITNEY_AMQP_PORT"); }

proton::connection_options anonymous() { return proton::connection_options().sasl_allowed_mechs("ANONYMOUS"); }

template <class A, class B> void same(const A &got, const B &wanted, const std::string &what = "") {
    if (got == wanted) return;
    std::ostringstream text;
    text << what << ": ";
    if constexpr (std::is_arithmetic_v<A>) text << got << ", not " << wanted;
    else if constexpr (std::is_convertible_v<A, std::string>) text << got << ", not " << wanted;
    else text << "not what was wanted";
    throw Failure(text.str());
}

void holds(bool condition, const std::string &what) {
    if (!condition) throw Failure("it does not hold: " + what);
}

std::vector<int> bodies(const Messages &received) {
    std::vector<int> all;
    for (const Received &each : received) all.push_back(proton::coerce<int>(each.message.body()));
    return all;
}

std::vector<int> counts(const Messages &received) {
    std::vector<int> all;
    for (const Received &each : received) all.push_back(int(each.message.delivery_count()));
    return all;
}

int64_t annotation(const proton::message &message, const char *name) {
    return proton::coerce<int64_t>(message.message_annotations().get(proton::symbol(name)));
}

std::vector<int64_t> numbers(const Messages &received) {
    std::vector<int64_t> all;
    for (const Received &each : received) all.push_back(annotation(each.message, "x-opt-sequence-number"));
    return all;
}

template <class T = int> std::vector<T> range(T first, T last) {
    std::vector<T> all(size_t(last - first + 1));
    std::iota(all.begin(), all.end(), first);
    return all;
}

void refused(const std::string &condition, const std::string &pattern, const std::function<void()> &work) {
    try {
        work();
    } catch (const Refused &error) {
        same(error.condition, condition, "condition");
        holds(std::regex_search(error.what(), std::regex(pattern)), error.what());
        return;
    }
    throw Failure("not refused with " + condition);
}

void accepted(Client &client, int sender, const proton::message &message) {
    same(int(client.send(sender, message)), int(State::ACCEPTED), "outcome");
}

void send(Client &client, const std::string &address, const std::vector<int> &all) {
    const int sender = client.sender(address);
    for (int body : all) accepted(client, sender, proton::message(body));
    client.close(sender);
}

proton::message sized(size_t size) {
    std::string bytes(size, 0);
    for (size_t index = 0; index < size; index++) bytes[index] = char(index * 31 % 251);
    proton::message message{proton::binary(bytes)};
    message.inferred(true);
    return message;
}

proton::receiver_options in_session(const proton::value &name, int wait = 20) {
    proton::source::filter_map filters;
    filters.put("com.microsoft:session-filter", name);
    proton::source_options source;
    source.filters(filters);
    proton::receiver_options options;
    options.source(source);
    options.properties({{"com.microsoft:timeout", uint32_t(wait * 1000)}});
    return options;
}

proton::message in(const std::string &session, int body) {
    proton::message message(body);
    message.group_id(session);
    return message;
}

void broker(const std::string &verb) {
    same(std::system((environment("JITNEY_BROKER_CONTROL") + " " + verb + " >/dev/null").c_str()), 0, "control");
}

// One of every type, as scalars.
std::map<std::string, proton::scalar> every_scalar() {
    return {
        {"true", true}, {"false", false}, {"ubyte", uint8_t(255)}, {"ushort", uint16_t(65535)},
        {"uint", std::numeric_limits<uint32_t>::max()}, {"ulong", std::numeric_limits<uint64_t>::max()},
        {"byte", int8_t(-128)}, {"short", int16_t(-32768)}, {"int", std::numeric_limits<int32_t>::min()},
        {"long", std::numeric_limits<int64_t>::min()}, {"zero", int32_t(0)}, {"float", 1.5f}, {"double", -2.25},
        {"infinity", std::numeric_limits<double>::infinity()}, {"char", wchar_t(0x20AC)},
        {"timestamp", proton::timestamp(-1)}, {"uuid", proton::uuid::random()}, {"binary", proton::binary(std::string("\0\xff", 2))},
        {"empty", proton::binary()}, {"string", std::string("\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80")},
        {"long string", std::string(300, 'x')}, {"symbol", proton::symbol("symbol")},
    };
}

std::vector<proton::value> every_body() {
    std::vector<proton::value> all;
    for (const auto &each : every_scalar()) all.push_back(each.second);
    all.push_back(proton::value());
    all.push_back(proton::decimal32());
    all.push_back(proton::decimal64());
    all.push_back(proton::decimal128());
    all.push_back(std::vector<int64_t>{1, 2, 3});
    all.push_back(std::vector<proton::symbol>{"a", "b"});
    proton::value list, map;
    proton::codec::encoder(list) << proton::codec::start::list() << 1 << std::string("two") << proton::codec::start::list()
                                 << 3.5 << proton::codec::finish() << proton::codec::finish();
    map = std::map<std::string, proton::value>{{"list", list}, {"number", uint32_t(7)}};
    all.push_back(list);
    all.push_back(map);
    proton::value described;
    proton::codec::encoder(described) << proton::codec::start::described() << proton::symbol("com.example:period")
                                      << std::string("P1D") << proton::codec::finish();
    all.push_back(described);
    return all;
}

struct Test {
    std::string name;
    std::function<void(Client &)> body;
};

const std::vector<Test> TESTS = {
    {"S01 a message is sent, received, accepted", [](Client &client) {
        send(client, "s01", {1});
        const int receiver = client.receiver("s01");
        const Messages received = client.receive(receiver, 1);
        same(bodies(received), std::vector<int>{1});
        client.accept(received[0]);
        same(client.available(receiver).size(), size_t(0), "left");
    }},
    {"S02 an unknown queue is not found", [](Client &client) {
        const std::string text = "The messaging entity .* could not be found";
        refused("amqp:not-found", text, [&] { client.sender("no-such-queue"); });
        refused("amqp:not-found", text, [&] { client.receiver("no-such-queue"); });
    }},
    {"S03 names do not depend on case", [](Client &client) {
        send(client, "S03", {1});
        same(bodies(client.receive(client.receiver("s03"), 1)), std::vector<int>{1});
    }},
    {"S04 many links share a connection", [](Client &client) {
        std::vector<int> senders, receivers;
        for (const char *address : {"s04", "s04b", "s04", "s04b", "s04", "s04b"}) senders.push_back(client.sender(address));
        for (const char *address : {"s04", "s04b"}) receivers.push_back(client.receiver(address));
        client.close(senders[0]);
        for (size_t index = 1; index < senders.size(); index++) accepted(client, senders[index], proton::message(int(index)));
        same(bodies(client.receive(receivers[0], 2)), std::vector<int>{2, 4});
        same(bodies(client.receive(receivers[1], 3)), std::vector<int>{1, 3, 5});
    }},
    {"S05 PLAIN is enough, without $cbs", [](Client &) {
        proton::connection_options options;
        options.sasl_allowed_mechs("PLAIN").user("RootManageSharedAccessKey").password("SAS_KEY_VALUE");
        Client plain(url(), options);
        send(plain, "s05", {1});
        same(bodies(plain.receive(plain.receiver("s05"), 1)), std::vector<int>{1});
    }},
    {"S07 S321 S350 bodies of every type come back", [](Client &client) {
        const std::vector<proton::value> sent = every_body();
        const int sender = client.sender("s350"), receiver = client.receiver("s350");
        for (const proton::value &body : sent) accepted(client, sender, proton::message(body));
        const Messages received = client.receive(receiver, unsigned(sent.size()));
        for (size_t index = 0; index < sent.size(); index++) {
            const proton::value &got = received[index].message.body();
            const bool none = sent[index].empty();
            same(got.empty() || got.type() == proton::NULL_TYPE, none, "is body " + std::to_string(index) + " null");
            if (none) continue;
            same(int(got.type()), int(sent[index].type()), "type of body " + std::to_string(index));
            // Proton cannot compare maps of maps and lists.
            const bool equal = got.type() == proton::MAP ? proton::to_string(got) == proton::to_string(sent[index]) : got == sent[index];
            holds(equal, "body " + std::to_string(index) + " of type " + proton::type_name(got.type()));
        }
    }},
    {"S08 S322 properties of every type come back", [](Client &client) {
        proton::message sent(1);
        sent.id(proton::uuid::random());
        sent.correlation_id(uint64_t(2));
        sent.user("user");
        sent.to("to");
        sent.subject("subject");
        sent.reply_to("reply-to");
        sent.content_type("text/plain");
        sent.content_encoding("gzip");
        sent.group_id("group");
        sent.group_sequence(7);
        sent.reply_to_group_id("reply-to-group");
        sent.ttl(proton::duration(600000));
        for (const auto &each : every_scalar()) sent.properties().put(each.first, each.second);
        accepted(client, client.sender("s08"), sent);
        const Messages received = client.receive(client.receiver("s08"), 1);
        const proton::message &got = received[0].message;
        holds(got.id() == sent.id() && got.correlation_id() == sent.correlation_id(), "ids");
        same(got.user() + got.to() + got.subject() + got.reply_to(), "usertosubjectreply-to");
        same(got.content_type() + got.content_encoding(), "text/plaingzip");
        same(got.group_id() + got.reply_to_group_id(), "groupreply-to-group");
        same(int(got.group_sequence()), 7, "group sequence");
        same(got.ttl().milliseconds(), int64_t(600000), "ttl");
        for (const auto &each : every_scalar()) {
            const proton::scalar value = got.properties().get(each.first);
            same(int(value.type()), int(each.second.type()), "type of " + each.first);
            holds(each.first == "uuid" || value == each.second, each.first);
        }
        holds(got.properties().get("uuid") == sent.properties().get("uuid"), "uuid");
    }},
    {"S09 header and annotations come back", [](Client &client) {
        proton::message sent(1);
        sent.durable(true);
        sent.priority(9);
        sent.message_annotations().put("x-message", uint32_t(7));
        sent.delivery_annotations().put("x-delivery", "delivery");
        accepted(client, client.sender("s09"), sent);
        const Messages received = client.receive(client.receiver("s09"), 1);
        proton::message got = received[0].message;
        holds(got.durable() && got.priority() == 9, "header");
        holds(got.message_annotations().get("x-message") == proton::value(uint32_t(7)), "message annotation");
        holds(got.delivery_annotations().get("x-delivery") == proton::value("delivery"), "delivery annotation");
    }},
    {"S11 large messages come back", [](Client &client) {
        const int sender = client.sender("s11"), receiver = client.receiver("s11");
        for (size_t size : {size_t(1), size_t(65536), size_t(200) << 10, size_t(1000000)}) {
            accepted(client, sender, sized(size));
            const Messages received = client.receive(receiver, 1);
            holds(received[0].message.body() == sized(size).body(), std::to_string(size) + " bytes");
            client.accept(received[0]);
        }
    }},
    {"S12 a message that is too large is refused", [](Client &client) {
        bool taken = false;
        try {
            taken = client.send(client.sender("s12"), sized(100 << 10)) == State::ACCEPTED;
        } catch (const Refused &error) {
            same(error.condition, "amqp:link:message-size-exceeded", "condition");
        }
        holds(!taken, "it is refused");
        send(client, "s12", {1});
        same(bodies(client.available(client.receiver("s12"))), std::vector<int>{1});
    }},
    {"S14 what is sent settled arrives", [](Client &client) {
        const int sender = client.sender("s14", proton::sender_options().delivery_mode(proton::delivery_mode::AT_MOST_ONCE));
        for (int body : range(1, 3)) client.send_settled(sender, proton::message(body));
        same(bodies(client.receive(client.receiver("s14"), 3)), range(1, 3));
    }},
    {"S15 numbers begin with one and have no gap", [](Client &client) {
        send(client, "s15", range(1, 7));
        same(numbers(client.receive(client.receiver("s15"), 7)), range<int64_t>(1, 7));
    }},
    {"S18 a locked message is nobody else's", [](Client &client) {
        send(client, "s18", {1});
        const Messages received = client.receive(client.receiver("s18"), 1);
        const int other = client.receiver("s18");
        same(client.available(other).size(), size_t(0), "locked");
        client.accept(received[0]);
        same(client.available(other).size(), size_t(0), "gone");
    }},
    {"S19 what comes settled is gone", [](Client &client) {
        send(client, "s19", range(1, 3));
        const proton::receiver_options options = proton::receiver_options().delivery_mode(proton::delivery_mode::AT_MOST_ONCE);
        const int receiver = client.receiver("s19", options);
        const Messages received = client.receive(receiver, 3);
        same(bodies(received), range(1, 3));
        for (const Received &each : received) holds(each.delivery.settled(), "settled");
        client.close(receiver);
        same(client.available(client.receiver("s19")).size(), size_t(0), "gone");
    }},
    {"S23 a rejected message is a dead letter", [](Client &client) {
        send(client, "s23", {1});
        const int receiver = client.receiver("s23");
        client.reject(client.receive(receiver, 1)[0]);
        same(client.available(receiver).size(), size_t(0), "left");
        same(bodies(client.receive(client.receiver("s23/$DeadLetterQueue"), 1)), std::vector<int>{1});
    }},
    {"S26 a lock ends", [](Client &client) {
        send(client, "s26", {1});
        const int receiver = client.receiver("s26");
        client.receive(receiver, 1);
        const auto began = Clock::now();
        const Messages again = client.receive(receiver, 1);
        holds(Clock::now() - began >= 4s, "no earlier than 4 s");
        same(counts(again), std::vector<int>{1});
        client.accept(again[0]);
    }},
    {"S32 released and modified messages are there at once", [](Client &client) {
        send(client, "s32", range(1, 3));
        const Messages received = client.receive(client.receiver("s32"), 3);
        client.release(received[0]);
        client.modify(received[1]);
        client.release(received[2]);
        const Messages again = client.receive(client.receiver("s32"), 3);
        same(bodies(again), range(1, 3));
        same(counts(again)[0] + counts(again)[2], 0, "count of what was released");
    }},
    {"S33 S347 a drain ends the credit at once, with messages and without", [](Client &client) {
        const int receiver = client.receiver("s347");
        for (int round = 0; round < 10; round++) {
            client.credit(receiver, 10);
            holds(client.drain(receiver) < 2s, "at once");
            same(client.taken(receiver).size(), size_t(0), "empty");
        }
        send(client, "s347", range(1, 5));
        same(bodies(client.available(receiver, 3)), range(1, 3));
        client.credit(receiver, 10);
        holds(client.drain(receiver) < 2s, "at once");
        same(bodies(client.taken(receiver)), range(4, 5));
        // The credit is gone: what is sent now waits for more.
        send(client, "s347", {6});
        client.nothing(receiver, 500ms);
        same(bodies(client.receive(receiver, 1)), std::vector<int>{6});
    }},
    {"S34 a message comes to who waits", [](Client &client) {
        const int receiver = client.receiver("s34");
        client.credit(receiver, 1);
        client.nothing(receiver, 1s);
        send(client, "s34", {1});
        const auto sent = Clock::now();
        same(bodies(client.wait_for(receiver, 1)), std::vector<int>{1});
        holds(Clock::now() - sent < 2s, "within 2 s");
    }},
    {"S35 two receivers share a queue", [](Client &client) {
        send(client, "s35", range(1, 20));
        const int receivers[] = {client.receiver("s35"), client.receiver("s35")};
        std::multiset<int> seen;
        for (int round = 0; round < 10; round++) {
            for (int receiver : receivers) {
                const Messages received = client.receive(receiver, 1);
                seen.insert(bodies(received)[0]);
                client.accept(received[0]);
            }
        }
        const std::vector<int> all = range(1, 20);
        holds(seen == std::multiset<int>(all.begin(), all.end()), "each once");
    }},
    {"S36 S349 no more comes than there is credit for", [](Client &client) {
        send(client, "s349", range(1, 20));
        const int receiver = client.receiver("s349");
        client.nothing(receiver, 300ms);
        client.credit(receiver, 3);
        same(bodies(client.wait_for(receiver, 3)), range(1, 3));
        client.nothing(receiver, 300ms);
        client.credit(receiver, 1);
        client.credit(receiver, 4);
        same(bodies(client.wait_for(receiver, 5)), range(4, 8));
        client.nothing(receiver, 300ms);
        client.credit(receiver, 12);
        same(bodies(client.wait_for(receiver, 12)), range(9, 20));
    }},
    {"S37 messages are settled in reverse", [](Client &client) {
        send(client, "s37", range(1, 20));
        Messages received = client.receive(client.receiver("s37"), 20);
        for (auto each = received.rbegin(); each != received.rend(); ++each) client.accept(*each);
        same(client.available(client.receiver("s37")).size(), size_t(0), "left");
    }},
    {"S39 nobody sends to a dead-letter queue", [](Client &client) {
        refused("amqp:not-allowed", "", [&] { client.sender("s39/$DeadLetterQueue"); });
    }},
    {"S64 S65 S66 disabled queues", [](Client &client) {
        const std::string disabled = "com.microsoft:entity-disabled";
        refused(disabled, "", [&] { client.sender("s64"); });
        same(client.available(client.receiver("s64")).size(), size_t(0), "empty");
        send(client, "s65", {1});
        refused(disabled, "", [&] { client.receiver("s65"); });
        refused(disabled, "", [&] { client.sender("s66"); });
        refused(disabled, "", [&] { client.receiver("s66"); });
    }},
    {"S67 a full queue rejects", [](Client &client) {
        const int sender = client.sender("s67");
        unsigned taken = 0;
        while (taken < 30 && client.send(sender, sized(100 << 10)) == State::ACCEPTED) taken++;
        holds(taken > 0 && taken < 30, "some are taken, and one is refused");
        const Messages received = client.receive(client.receiver("s67"), taken);
        for (const Received &each : received) client.accept(each);
        accepted(client, sender, proton::message(1));
    }},
    {"S101 S102 sessions are accepted by name, and the next one", [](Client &client) {
        const int sender = client.sender("s101");
        for (int body : range(1, 6)) accepted(client, sender, in(body % 2 ? "a" : "b", body));
        const int a = client.receiver("s101", in_session("a"));
        same(client.session(a), "a");
        same(bodies(client.available(a)), std::vector<int>{1, 3, 5});
        proton::value none;
        none = proton::null();
        const int next = client.receiver("s101", in_session(none));
        same(client.session(next), "b");
        same(bodies(client.available(next)), std::vector<int>{2, 4, 6});
    }},
    {"S104 the next session is waited for in vain", [](Client &client) {
        proton::value none;
        none = proton::null();
        const auto began = Clock::now();
        refused("com.microsoft:timeout", "", [&] { client.receiver("s104", in_session(none, 4)); });
        const auto waited = Clock::now() - began;
        holds(waited >= 3s && waited <= 10s, "between 3 s and 10 s");
    }},
    {"S109 a session is held by one", [](Client &client) {
        const int first = client.receiver("s109", in_session("x"));
        refused("com.microsoft:session-cannot-be-locked", "", [&] { client.receiver("s109", in_session("x")); });
        client.close(first);
        same(client.session(client.receiver("s109", in_session("x"))), "x");
    }},
    {"S128 S129 sessions are where they are required", [](Client &client) {
        refused("amqp:not-allowed", "It is not possible for an entity that requires sessions", [&] { client.receiver("s128"); });
        refused("amqp:not-allowed", "does not require sessions", [&] { client.receiver("s129", in_session("x")); });
    }},
    {"S141 every subscription has its copy", [](Client &client) {
        const int sender = client.sender("s141");
        for (int body : range(1, 5)) {
            proton::message message(body);
            message.properties().put("n", body);
            accepted(client, sender, message);
        }
        for (const char *name : {"a", "b"}) {
            same(bodies(client.receive(client.receiver(std::string("s141/Subscriptions/") + name), 5)), range(1, 5));
        }
        const Messages odd = client.receive(client.receiver("s141/Subscriptions/odd"), 3);
        same(bodies(odd), std::vector<int>{1, 3, 5});
        same(numbers(odd), range<int64_t>(1, 3));
    }},
    {"S149 S150 subscriptions are received from, and those that are there", [](Client &client) {
        refused("amqp:not-allowed", "", [&] { client.sender("s149/Subscriptions/a"); });
        refused("amqp:not-allowed", "", [&] { client.receiver("s149"); });
        refused("amqp:not-found", "", [&] { client.receiver("s150/Subscriptions/no-such"); });
    }},
    {"S261 AMQPS is on every port", [](Client &) {
        const proton::ssl_client_options trust(environment("JITNEY_AUTHORITIES"), proton::ssl::VERIFY_PEER_NAME);
        Client secure(url("amqps"), anonymous().ssl_client_options(trust));
        send(secure, "s341", {1});
        same(bodies(secure.receive(secure.receiver("s341"), 1)), std::vector<int>{1});
    }},
    {"S262 who does not trust the authority does not connect", [](Client &) {
        bool connected = true;
        try {
            Client stranger(url("amqps"), anonymous().ssl_client_options(proton::ssl_client_options(proton::ssl::VERIFY_PEER_NAME)));
        } catch (const Failure &error) {
            connected = std::string(error.what()).find("certificate") == std::string::npos;
        }
        holds(!connected, "it is refused");
    }},
    {"S309 a thousand unsettled on one link", [](Client &client) {
        send(client, "s309", range(1, 1000));
        const int receiver = client.receiver("s309");
        const Messages received = client.receive(receiver, 1000);
        same(numbers(received), range<int64_t>(1, 1000));
        for (size_t index = 0; index < received.size(); index++) client.accept(received[index * 7 % 1000]);
        same(client.available(receiver).size(), size_t(0), "left");
    }},
    {"S312 a message of 20 MiB comes back", [](Client &client) {
        accepted(client, client.sender("s312"), sized(20 << 20));
        const Messages received = client.receive(client.receiver("s312"), 1);
        holds(received[0].message.body() == sized(20 << 20).body(), "byte for byte");
    }},
    // The last one: it ends the broker.
    {"S308 S348 the client reconnects by itself after a restart", [](Client &) {
        for (const char *verb : {"kill", "stop"}) {
            Client client(url(), anonymous(), true);
            int sender = client.sender("s348"), receiver = client.receiver("s348");
            accepted(client, sender, proton::message(1));
            const Messages before = client.receive(receiver, 1);
            same(bodies(before), std::vector<int>{1});
            client.accept(before[0]);
            // A round trip: the broker has taken what came before it.
            same(client.available(receiver).size(), size_t(0), "taken");
            broker(verb);
            broker("start");
            client.wait_opened(2);
            // The links are opened again by the client, after a stop in good order as after a kill.
            accepted(client, sender, proton::message(2));
            const Messages after = client.receive(receiver, 1);
            same(bodies(after), std::vector<int>{2});
            client.accept(after[0]);
            same(client.available(receiver).size(), size_t(0), "left");
        }
    }},
};

} // namespace

int main(int count, char **words) {
    for (const Test &test : TESTS) {
        bool wanted = count == 1;
        for (int index = 1; index < count; index++) wanted |= test.name.find(words[index]) != std::string::npos;
        if (!wanted) continue;
        std::string complaint;
        const auto began = Clock::now();
        try {
            Client client(url(), anonymous());
            test.body(client);
        } catch (const std::exception &error) {
            complaint = error.what();
        }
        const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began).count();
        std::cout << (complaint.empty() ? "ok    " : "FAIL  ") << test.name << " (" << took << " ms)" << std::endl;
        if (!complaint.empty()) std::cout << "    " << complaint << std::endl;
    }
    return 0;
}
