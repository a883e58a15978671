// A team of threads under ThreadSanitizer:
//   g++ -std=c++17 -O1 -g -fsanitize=thread -pthread -Isrc/widemargin/_native/cpp tests/native/team_test.cpp
#include "team.hpp"

namespace {

using wm::Index;
using wm::Stopped;
using wm::Team;

int n_failures = 0;

void check(bool is_right, const char* what) {
    if (is_right) return;
    std::printf("FAILED: %s\n", what);
    ++n_failures;
}

// How often each block is visited by one call; plain integers, so that the sanitizer sees two visitors of one block.
std::vector<int> count_visits(Team& team, Index n_blocks) {
    std::vector<int> visits(n_blocks, 0);
    team.for_each_block(n_blocks, [&](Index block) { ++visits[block]; });
    return visits;
}

bool is_each_visited_once(Team& team, Index n_blocks) {
    return count_visits(team, n_blocks) == std::vector<int>(n_blocks, 1);
}

void test_every_block_is_visited_once(bool is_spinning) {
    for (int n_threads : {1, 2, 3, 8}) {
        Team team(n_threads, is_spinning);
        for (Index n_blocks : {0, 1, 2, 3, 7, 64, 1000})
            check(is_each_visited_once(team, n_blocks), "each block is visited once");
    }
}

// What one call writes the next one reads, in whichever thread.
void test_calls_follow_one_another(int n_threads, bool is_spinning) {
    Team team(n_threads, is_spinning);
    constexpr Index n_blocks = 16, n_calls = 3000;
    std::vector<Index> values(n_blocks, 0), next(n_blocks, 0);
    for (Index call = 0; call < n_calls; ++call) {
        team.for_each_block(n_blocks, [&](Index block) { next[block] = values[(block + 1) % n_blocks] + 1; });
        values.swap(next);
    }
    check(values == std::vector<Index>(n_blocks, n_calls), "a call sees what the one before it wrote");
}

// Helpers have gone to sleep by then.
void test_helpers_wake_up() {
    Team team(3);
    for (int pause = 0; pause < 20; ++pause) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        check(is_each_visited_once(team, 50), "each block is visited once after a pause");
    }
}

void test_several_callers_at_once() {
    Team team(3);
    std::atomic<int> n_right{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller)
        callers.emplace_back([&] {
            for (int call = 0; call < 300; ++call) n_right += is_each_visited_once(team, 1 + call % 20);
        });
    for (std::thread& caller : callers) caller.join();
    check(n_right == 4 * 300, "each block is visited once, whoever else calls");
}

void test_teams_within_a_team() {
    Team team(3);
    std::vector<int> is_right(12, 0);
    team.for_each_block(12, [&](Index block) {
        Team inner(2);
        is_right[block] = is_each_visited_once(inner, 10);
    });
    check(is_right == std::vector<int>(12, 1), "teams start, work and end in the threads of another");
}

bool is_stopped(Team& team, Index n_blocks) {
    try {
        team.for_each_block(n_blocks, [](Index) {});
    } catch (const Stopped&) {
        return true;
    }
    return false;
}

void test_stop_and_resume() {
    for (int n_threads : {1, 3}) {
        Team team(n_threads);
        team.stop();
        check(is_stopped(team, 100), "a stopped team visits no more blocks");
        team.resume();
        check(is_each_visited_once(team, 100), "each block is visited once when it goes on");
        team.stop_at(wm::nanoseconds_now() + 2'000'000);
        while (!is_stopped(team, 1000)) {}
        check(!team.may_go_on(), "its time is over");
    }
}

// From another thread, in the midst of a call; blocks that were visited were visited once.
void test_stop_while_it_works() {
    for (int n_threads : {1, 3}) {
        Team team(n_threads);
        for (int call = 0; call < 50; ++call) {
            std::vector<int> visits(100000, 0);
            std::thread stopper([&] { team.stop(); });
            try {
                team.for_each_block(100000, [&](Index block) { ++visits[block]; });
            } catch (const Stopped&) {
            }
            stopper.join();
            team.resume();
            int most_visits = 0;
            for (int n : visits) most_visits = wm::maximum(most_visits, n);
            check(most_visits <= 1, "no block is visited twice");
        }
    }
}

void test_the_caller_may_end_a_call() {
    Team team(3);
    Index n_looks = 0;
    bool has_thrown = false;
    try {
        team.for_each_block(100000, [](Index) {}, [&] { return ++n_looks < 10; });
    } catch (const Stopped&) {
        has_thrown = true;
    }
    check(has_thrown || n_looks < 10, "a call ends when its caller says so");
    check(is_each_visited_once(team, 100), "and the next one is as any other");
}

void test_a_closed_team_works_alone() {
    Team team(3);
    check(is_each_visited_once(team, 100), "each block is visited once");
    team.close();
    check(team.n_threads() == 1 && is_each_visited_once(team, 100), "and after the helpers' end");
    team.close();
}

void test_close_beside_a_call() {
    for (int again = 0; again < 50; ++again) {
        Team team(3);
        bool is_right = false;
        std::thread caller([&] { is_right = is_each_visited_once(team, 200); });
        team.close();
        caller.join();
        check(is_right, "each block is visited once by a call beside the helpers' end");
    }
}

}  // namespace

int main() {
    for (bool is_spinning : {true, false}) {
        test_every_block_is_visited_once(is_spinning);
        test_calls_follow_one_another(3, is_spinning);
    }
    test_helpers_wake_up();
    test_several_callers_at_once();
    test_teams_within_a_team();
    test_stop_and_resume();
    test_stop_while_it_works();
    test_the_caller_may_end_a_call();
    test_a_closed_team_works_alone();
    test_close_beside_a_call();
    std::printf("%d failures\n", n_failures);
    return n_failures != 0;
}
