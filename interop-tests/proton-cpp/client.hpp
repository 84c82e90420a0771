// A blocking client on Proton's C++ container: one connection, links that are called by a number, and waits with a deadline.
#pragma once

#include <proton/connection.hpp>
#include <proton/connection_options.hpp>
#include <proton/container.hpp>
#include <proton/delivery.hpp>
#include <proton/error_condition.hpp>
#include <proton/message.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/receiver.hpp>
#include <proton/receiver_options.hpp>
#include <proton/sender.hpp>
#include <proton/sender_options.hpp>
#include <proton/session.hpp>
#include <proton/tracker.hpp>
#include <proton/transport.hpp>
#include <proton/work_queue.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto DEADLINE = 20s;

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What the broker refused, with its condition and description.
struct Refused : Failure {
    std::string condition;
    Refused(const std::string &name, const std::string &text) : Failure(name + ": " + text), condition(name) {}
};

struct Received {
    proton::message message;
    proton::delivery delivery;
};

class Client : public proton::messaging_handler {
  public:
    // One that `returns` makes its connection anew when it ends.
    explicit Client(const std::string &url, proton::connection_options options, bool returns = false);
    ~Client() override;

    // Opens a link, and waits until the broker has taken or refused it.
    int sender(const std::string &address, proton::sender_options options = {});
    int receiver(const std::string &address, proton::receiver_options options = {});
    void close(int link);

    // Sends, and waits for the outcome.
    enum proton::transfer::state send(int link, proton::message message);
    // Sends what comes settled, so without an outcome.
    void send_settled(int link, const proton::message &message);

    void credit(int link, unsigned count);
    // Takes back what credit there is; how long the broker took to say so.
    std::chrono::milliseconds drain(int link);
    // What has come, without a wait.
    std::vector<Received> taken(int link);
    // Exactly so many more; credit is the caller's.
    std::vector<Received> wait_for(int link, size_t count);
    // Credit for so many, and the messages.
    std::vector<Received> receive(int link, unsigned count);
    // What is there now: credit that is drained.
    std::vector<Received> available(int link, unsigned count = 100);
    // That nothing comes for a time.
    void nothing(int link, std::chrono::milliseconds time);

    void accept(const Received &received);
    void reject(const Received &received);
    void release(const Received &received);
    void modify(const Received &received);

    // The session that a link was granted.
    std::string session(int link);
    // Waits until the connection was opened that often, and its links.
    void wait_opened(int times);

  private:
    struct Link {
        proton::sender sender;
        proton::receiver receiver;
        // How often: a connection that is made anew opens its links again.
        int opened = 0;
        bool open = false, closed = false, drained = false;
        std::string condition, description;
        std::deque<Received> incoming;
    };

    void on_connection_open(proton::connection &) override;
    void on_transport_error(proton::transport &) override;
    void on_connection_error(proton::connection &) override;
    void on_sender_open(proton::sender &) override;
    void on_sendable(proton::sender &) override;
    void on_sender_error(proton::sender &) override;
    void on_sender_close(proton::sender &) override;
    void on_receiver_open(proton::receiver &) override;
    void on_receiver_error(proton::receiver &) override;
    void on_receiver_close(proton::receiver &) override;
    void on_message(proton::delivery &, proton::message &) override;
    void on_receiver_drain_finish(proton::receiver &) override;
    void on_tracker_settle(proton::tracker &) override;
    void on_error(const proton::error_condition &) override;

    // Runs in the container's thread, which alone may touch what is Proton's.
    void there(const std::function<void()> &work);
    void until(const std::string &what, const std::function<bool()> &condition, std::chrono::milliseconds limit = DEADLINE);
    Link &find(const std::string &name);
    void ended(const std::string &name, const proton::error_condition &error);
    int opening(int number);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, Link> links_;
    std::map<std::string, enum proton::transfer::state> outcomes_;
    std::string broken_;
    int opened_ = 0;
    const bool returns_;
    proton::container container_;
    proton::connection connection_;
    proton::work_queue *work_ = nullptr;
    std::thread thread_;
};
