#include <cstdlib>
#include <mutex>
#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"
#include "team.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace wm {
namespace {

// Call the Python function fn(worker, item) for each item in [0, n) in all threads of a team; `worker` numbers the
// threads. After an exception no further item is begun; of several exceptions that of the first item is raised.
void map(Team& team, const nb::callable& fn, Index n) {
    std::atomic<Index> next{0};
    std::mutex mutex;  // of the next two; Python is not called while it is held
    Index failed = n;
    std::optional<nb::python_error> error;
    const auto fail = [&](Index item, nb::python_error* raised) {
        std::optional<nb::python_error> later;  // ends after the mutex is released
        std::lock_guard<std::mutex> guard(mutex);
        if (item >= failed) return;
        failed = item;
        if (!raised) return;
        if (error) later.emplace(std::move(*error));
        error.emplace(std::move(*raised));
    };
    const auto call = [&](Index worker, Index item) {
        try {
            const nb::object result = nb::steal(wm_call(fn.ptr(), nb::int_(worker).ptr(), nb::int_(item).ptr()));
            if (!result) nb::raise_python_error();
        } catch (nb::python_error& raised) {
            next = n;
            fail(item, &raised);
        }
    };
    const auto work = [&](Index worker) {
        LockHeld lock;
        for (Index item; (item = next.fetch_add(1)) < n;) {
            if (!team.may_go_on()) {
                next = n;
                fail(-1, nullptr);
                break;
            }
            call(worker, item);
        }
    };
    {
        LockReleased unlocked;
        team.for_each_block(minimum<Index>(team.n_threads(), n), work);
    }
    if (error) throw std::move(*error);
    if (failed < 0) throw Stopped();
}

// From here on malloc keeps n_bytes of freed memory; an array of half as many and more goes back to the system at once.
// The user's own settings stay.
void keep_freed_memory([[maybe_unused]] int n_bytes) {
#ifdef __GLIBC__
    if (std::getenv("MALLOC_TRIM_THRESHOLD_") || std::getenv("MALLOC_MMAP_THRESHOLD_")) return;
    mallopt(M_MMAP_THRESHOLD, n_bytes / 2);
    mallopt(M_TRIM_THRESHOLD, n_bytes);
#endif
}

// malloc keeps pages between arrays that are in use, of each thread, whatever it was told to keep.
void return_freed_memory() {
#ifdef __GLIBC__
    LockReleased unlocked;
    malloc_trim(0);
#endif
}

}  // namespace

void bind_threads(nb::module_& m) {
#ifndef _WIN32
    static const int once = pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1); });
    static_cast<void>(once);
#endif
    nb::exception<Stopped>(m, "Stopped", PyExc_RuntimeError);
    nb::class_<Team>(m, "Team",
                     "n_threads threads that share out the blocks of a computation: n_threads - 1 helpers and the caller.\n\n"
                     "While one thread computes with the team, a second caller computes its blocks alone. is_spinning:\n"
                     "whether helpers spin for up to a millisecond between calls.")
        .def(
            "__init__",
            [](Team* team, int n_threads, bool is_spinning) {
                if (n_threads < 1 || n_threads > 4096)
                    throw nb::value_error(("n_threads must be in [1, 4096], got " + std::to_string(n_threads)).c_str());
                new (team) Team(n_threads, is_spinning);
            },
            "n_threads"_a, "is_spinning"_a = true)
        .def_prop_ro("n_threads", &Team::n_threads, "The number of threads, the caller included.")
        .def("stop", &Team::stop, "Until `resume`, every computation ends before its next block and raises Stopped.")
        .def(
            "stop_after",
            [](Team& team, double seconds) {
                if (!(seconds < 1e9)) return team.resume();
                team.stop_at(nanoseconds_now() + static_cast<std::int64_t>(maximum(seconds, 0.0) * 1e9));
            },
            "seconds"_a, "Call `stop` after so many seconds; never, if that is infinite.")
        .def("resume", &Team::resume, "Revoke `stop` and `stop_after`.")
        .def_prop_ro(
            "is_stopped", [](const Team& team) { return !team.may_go_on(); },
            "Whether `stop` is in force.")
        .def(
            "map",
            [](Team& team, const nb::callable& fn, Index n) {
                check_at_least("n", n, 0);
                map(team, fn, n);
            },
            "fn"_a,
            "n"_a, "Call fn(worker, item) for each item in range(n), in all threads; worker is the thread's number.")
        .def(
            "close",
            [](Team& team) {
                LockReleased unlocked;
                team.close();
            },
            "End the helper threads; from then on the caller computes alone.");
    m.def("keep_freed_memory", &keep_freed_memory, "n_bytes"_a,
          "Let the C library keep so many bytes of freed memory for later arrays; without effect where it is not glibc.");
    m.def("return_freed_memory", &return_freed_memory, "Return it to the system now; without effect where it is not glibc.");
}

}  // namespace wm
