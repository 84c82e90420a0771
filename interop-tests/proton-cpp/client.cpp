#include "client.hpp"

#include <proton/reconnect_options.hpp>
#include <proton/source.hpp>
#include <proton/symbol.hpp>
#include <proton/target.hpp>
#include <proton/types.hpp>

#include <random>
#include <sstream>

namespace {

// Names of links are for the whole broker, not for a connection only.
std::string prefix() {
    static const std::string text = [] {
        std::ostringstream out;
        out << "cpp-" << std::hex << std::random_device{}() << std::random_device{}() << "-";
        return out.str();
    }();
    return text;
}

std::string name_of(int number) { return prefix() + std::to_string(number); }

std::string key_of(const proton::tracker &tracker) {
    const proton::binary tag = tracker.tag();
    return tracker.sender().name() + "/" + std::string(tag.begin(), tag.end());
}

std::atomic<int> numbers{1};

} // namespace

Client::Client(const std::string &url, proton::connection_options options, bool returns)
    : returns_(returns), container_(*this) {
    if (returns) options.reconnect(proton::reconnect_options().delay(proton::duration(100)).max_delay(proton::duration(500)));
    options.sasl_allow_insecure_mechs(true);
    container_.auto_stop(false);
    container_.connect(url, options);
    thread_ = std::thread([this] { container_.run(); });
    try {
        wait_opened(1);
    } catch (...) {
        container_.stop();
        thread_.join();
        throw;
    }
}

Client::~Client() {
    container_.stop();
    thread_.join();
}

void Client::there(const std::function<void()> &work) {
    bool done = false;
    std::exception_ptr error;
    work_->add([&] {
        std::exception_ptr caught;
        try {
            work();
        } catch (...) {
            caught = std::current_exception();
        }
        std::lock_guard<std::mutex> lock(mutex_);
        error = caught;
        done = true;
        changed_.notify_all();
    });
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done; });
    if (error) std::rethrow_exception(error);
}

void Client::until(const std::string &what, const std::function<bool()> &condition, std::chrono::milliseconds limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool there = changed_.wait_for(lock, limit, [&] { return !broken_.empty() || condition(); });
    if (!broken_.empty()) throw Failure(broken_);
    if (!there) throw Failure("not in time: " + what);
}

Client::Link &Client::find(const std::string &name) {
    return links_[name];
}

int Client::opening(int number) {
    const std::string name = name_of(number);
    until("the answer to an attach", [&] {
        Link &link = find(name);
        return link.closed || link.open;
    });
    std::lock_guard<std::mutex> lock(mutex_);
    Link &link = find(name);
    if (link.closed) throw Refused(link.condition, link.description);
    return number;
}

int Client::sender(const std::string &address, proton::sender_options options) {
    const int number = numbers++;
    there([&] {
        options.name(name_of(number));
        connection_.open_sender(address, options);
    });
    return opening(number);
}

int Client::receiver(const std::string &address, proton::receiver_options options) {
    const int number = numbers++;
    there([&] {
        options.name(name_of(number)).auto_accept(false).credit_window(0);
        connection_.open_receiver(address, options);
    });
    return opening(number);
}

void Client::close(int number) {
    const std::string name = name_of(number);
    there([&] {
        Link &link = find(name);
        if (link.sender) link.sender.close();
        if (link.receiver) link.receiver.close();
    });
    until("the answer to a detach", [&] { return find(name).closed; });
}

enum proton::transfer::state Client::send(int number, proton::message message) {
    // A tag of our own: Proton gives a delivery that of the last one, when that is settled.
    const std::string tag = std::to_string(numbers++), key = name_of(number) + "/" + tag;
    there([&] { find(name_of(number)).sender.send(message, proton::binary(tag)); });
    until("an outcome", [&] { return outcomes_.count(key) > 0 || find(name_of(number)).closed; });
    std::lock_guard<std::mutex> lock(mutex_);
    Link &link = find(name_of(number));
    if (!outcomes_.count(key)) throw Refused(link.condition, link.description);
    return outcomes_[key];
}

void Client::send_settled(int number, const proton::message &message) {
    there([&] { find(name_of(number)).sender.send(message); });
}

void Client::credit(int number, unsigned count) {
    there([&] { find(name_of(number)).receiver.add_credit(count); });
}

std::chrono::milliseconds Client::drain(int number) {
    const std::string name = name_of(number);
    const auto began = Clock::now();
    there([&] {
        find(name).drained = false;
        find(name).receiver.drain();
    });
    until("a drain", [&] { return find(name).drained; });
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
}

std::vector<Received> Client::taken(int number) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::deque<Received> &incoming = find(name_of(number)).incoming;
    std::vector<Received> all(incoming.begin(), incoming.end());
    incoming.clear();
    return all;
}

std::vector<Received> Client::wait_for(int number, size_t count) {
    const std::string name = name_of(number);
    until(std::to_string(count) + " messages", [&] {
        Link &link = find(name);
        return link.incoming.size() >= count || link.closed;
    });
    std::lock_guard<std::mutex> lock(mutex_);
    Link &link = find(name);
    if (link.incoming.size() < count) throw Refused(link.condition, link.description);
    std::vector<Received> some(link.incoming.begin(), link.incoming.begin() + count);
    link.incoming.erase(link.incoming.begin(), link.incoming.begin() + count);
    return some;
}

std::vector<Received> Client::receive(int number, unsigned count) {
    credit(number, count);
    return wait_for(number, count);
}

std::vector<Received> Client::available(int number, unsigned count) {
    credit(number, count);
    drain(number);
    return taken(number);
}

void Client::nothing(int number, std::chrono::milliseconds time) {
    const std::string name = name_of(number);
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, time, [&] { return !find(name).incoming.empty(); })) throw Failure("something came");
}

void Client::accept(const Received &received) {
    there([&] { proton::delivery(received.delivery).accept(); });
}

void Client::reject(const Received &received) {
    there([&] { proton::delivery(received.delivery).reject(); });
}

void Client::release(const Received &received) {
    there([&] { proton::delivery(received.delivery).release(); });
}

void Client::modify(const Received &received) {
    there([&] { proton::delivery(received.delivery).modify(); });
}

std::string Client::session(int number) {
    std::string text;
    there([&] {
        const auto filters = find(name_of(number)).receiver.source().filters();
        text = proton::get<std::string>(filters.get("com.microsoft:session-filter"));
    });
    return text;
}

void Client::wait_opened(int times) {
    until("a connection", [&] {
        bool all = opened_ >= times;
        for (const auto &each : links_) all &= each.second.closed || each.second.opened >= times;
        return all;
    });
}

void Client::on_connection_open(proton::connection &connection) {
    std::lock_guard<std::mutex> lock(mutex_);
    connection_ = connection;
    work_ = &connection.work_queue();
    opened_++;
    changed_.notify_all();
}

void Client::on_transport_error(proton::transport &transport) {
    if (!returns_) on_error(transport.error());
}

void Client::on_connection_error(proton::connection &connection) { on_error(connection.error()); }

void Client::on_error(const proton::error_condition &error) {
    std::lock_guard<std::mutex> lock(mutex_);
    broken_ = error.what();
    changed_.notify_all();
}

void Client::ended(const std::string &name, const proton::error_condition &error) {
    std::lock_guard<std::mutex> lock(mutex_);
    Link &link = find(name);
    if (!link.closed) {
        link.condition = error.name();
        link.description = error.description();
    }
    link.closed = true;
    changed_.notify_all();
}

// A refused link is attached, without an address, and detached then; one that is taken gets credit or has an address.
void Client::on_sender_open(proton::sender &sender) {
    std::lock_guard<std::mutex> lock(mutex_);
    Link &link = find(sender.name());
    link.sender = sender;
    link.opened++;
    changed_.notify_all();
}

void Client::on_sendable(proton::sender &sender) {
    std::lock_guard<std::mutex> lock(mutex_);
    Link &link = find(sender.name());
    link.sender = sender;
    link.open = true;
    changed_.notify_all();
}

void Client::on_receiver_open(proton::receiver &receiver) {
    std::lock_guard<std::mutex> lock(mutex_);
    Link &link = find(receiver.name());
    link.receiver = receiver;
    link.opened++;
    link.open = !receiver.source().address().empty();
    changed_.notify_all();
}

void Client::on_sender_error(proton::sender &sender) { ended(sender.name(), sender.error()); }
void Client::on_sender_close(proton::sender &sender) { ended(sender.name(), sender.error()); }
void Client::on_receiver_error(proton::receiver &receiver) { ended(receiver.name(), receiver.error()); }
void Client::on_receiver_close(proton::receiver &receiver) { ended(receiver.name(), receiver.error()); }

void Client::on_message(proton::delivery &delivery, proton::message &message) {
    std::lock_guard<std::mutex> lock(mutex_);
    find(delivery.receiver().name()).incoming.push_back({message, delivery});
    changed_.notify_all();
}

void Client::on_receiver_drain_finish(proton::receiver &receiver) {
    std::lock_guard<std::mutex> lock(mutex_);
    find(receiver.name()).drained = true;
    changed_.notify_all();
}

void Client::on_tracker_settle(proton::tracker &tracker) {
    std::lock_guard<std::mutex> lock(mutex_);
    outcomes_[key_of(tracker)] = tracker.state();
    changed_.notify_all();
}
