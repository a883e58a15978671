#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace wm {
namespace {

// fn(worker, item) for each item in [0, n), in Python, by all threads of a team: `worker` numbers the threads.
// Items follow the first that raised an exception no more; the exception of the earliest item is raised.
void map(Team& team, const nb::callable& fn, Index n) {
    std::atomic<Index> next{0};
    Index failed = n;  // changed with the interpreter's lock held, as is the error
    std::optional<nb::python_error> error;
    const auto work = [&](Index worker) {
        nb::gil_scoped_acquire lock;
        for (Index item; (item = next.fetch_add(1)) < n;) {
            try {
                if (!team.may_go_on()) throw Stopped();
                fn(worker, item);
            } catch (nb::python_error& raised) {
                next = n;
                if (item < failed) failed = item, error.emplace(std::move(raised));
            } catch (const Stopped&) {
                next = n;
                failed = -1;
            }
        }
    };
    {
        nb::gil_scoped_release unlocked;
        team.for_each_block(least<Index>(team.n_threads(), n), work);
    }
    if (error) throw std::move(*error);
    if (failed < 0) throw Stopped();
}

}  // namespace

void bind_threads(nb::module_& m) {
#ifndef _WIN32
    static const int once = pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1); });
    static_cast<void>(once);
#endif
    nb::exception<Stopped>(m, "Stopped", PyExc_RuntimeError);
    nb::class_<Team>(m, "Team",
                     "Threads that share out the blocks of a computation: helpers, and the thread that calls.\n\n"
                     "One that is asked by two threads at once computes the second's blocks in that thread alone.")
        .def(
            "__init__",
            [](Team* team, int n_threads, bool is_spinning) {
                if (n_threads < 1 || n_threads > 4096)
                    throw nb::value_error(("n_threads must be in [1, 4096], got " + std::to_string(n_threads)).c_str());
                new (team) Team(n_threads, is_spinning);
            },
            "n_threads"_a, "is_spinning"_a = true)
        .def_prop_ro("n_threads", &Team::n_threads, "The number of threads, the caller's among them.")
        .def("stop", &Team::stop, "End all computations before their next block, with Stopped, until `resume`.")
        .def(
            "stop_after",
            [](Team& team, double seconds) {
                if (!(seconds < 1e9)) return team.resume();
                team.stop_at(nanoseconds_now() + static_cast<std::int64_t>(most(seconds, 0.0) * 1e9));
            },
            "seconds"_a, "As `stop`, in so many seconds; never, if that is infinite.")
        .def("resume", &Team::resume, "Take `stop` and `stop_after` back.")
        .def_prop_ro(
            "is_stopped", [](const Team& team) { return !team.may_go_on(); },
            "Whether computations end before their next block.")
        .def(
            "map", [](Team& team, const nb::callable& fn, Index n) { map(team, fn, n); }, "fn"_a, "n"_a,
            "Call fn(thread, item) for each item in range(n), several at a time.")
        .def(
            "close",
            [](Team& team) {
                nb::gil_scoped_release unlocked;
                team.close();
            },
            "End the helper threads; the calling thread does everything from here on.");
}

}  // namespace wm
