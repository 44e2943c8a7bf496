#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <random>
#include <set>

#include "forest_harness.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

/// A forest grown at random while it runs, over an alphabet so small that paths meet all the time.
class RandomForest {
 public:
  struct Shape {
    HarnessOptions options;
    int alphabet = 3;
    int longest = 12;
    bool labels = true;
    bool groups = true;
    bool withdraws = true;
    bool distinct = false;  ///< no path is asked twice
  };

  RandomForest(const Shape& shape, std::uint64_t seed)
      : shape_(shape), random_(seed), harness_(shape.options), nodes_{harness_.root()} {}

  Harness& harness() { return harness_; }
  const std::vector<Tokens>& asked_paths() const { return paths_; }

  void Grow(int actions) {
    for (int i = 0; i < actions; ++i) {
      const int action = Draw(10);
      if (action < 4) {
        nodes_.push_back(harness_.Child(Node(), Text(0)));
      } else if (action < 8) {
        AddSource();
      } else if (action < 9) {
        harness_.forest->Expect(Node(), Draw(3) / 2.0);
      } else if (shape_.withdraws) {
        Withdraw();
      }
    }
  }

  void Step() { Receive(harness_.Step()); }
  void Finish() {
    do {
      Step();
    } while (harness_.more);
  }

  /// What must hold when nothing is asked any more.
  void CheckDone() {
    RC_ASSERT(harness_.backend.fault() == "");
    RC_ASSERT(harness_.forest->pending() == 0U);
    for (const auto& [source, state] : sources_) {
      const bool may_miss = state.withdrawn || Stopped(state);
      for (const int times : state.answered) RC_ASSERT(times == 1 || (may_miss && times == 0));
    }
    for (const auto& [group, answered] : answered_) {
      const GroupState state = harness_.forest->group(GroupId(group));
      RC_ASSERT(state.answered == answered);
    }
  }

  void ForgetExpectations() {
    for (const NodeId node : nodes_) harness_.forest->Expect(node, 0);
  }

 private:
  struct State {
    std::vector<int> answered;
    std::optional<GroupId> group;
    NodeId node;
    bool withdrawn = false;
  };

  int Draw(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
  NodeId Node() { return nodes_[random_() % nodes_.size()]; }
  Tokens Text(int shortest) {
    Tokens text;
    const int length = shortest + Draw(shape_.longest);
    for (int i = 0; i < length; ++i) text.emplace_back(Draw(shape_.alphabet));
    return text;
  }
  bool Stopped(const State& state) {
    return state.group && harness_.forest->group(*state.group).stopped;
  }

  void AddSource() {
    const NodeId node = Node();
    std::vector<Tokens> leaves;
    for (int i = Draw(12); i > 0; --i) {
      Tokens leaf = Text(1);
      if (shape_.distinct && !seen_.insert(harness_.path(node) + leaf).second) continue;
      paths_.push_back(harness_.path(node) + leaf);
      leaves.push_back(std::move(leaf));
    }
    SourceOptions options;
    options.priority = Draw(8) == 0 ? Draw(3) : 0;
    options.step = static_cast<std::uint16_t>(Draw(3));
    if (shape_.labels && Draw(4) == 0) options.readout = ReadoutKind::kLogProbability;
    if (shape_.groups && Draw(3) == 0) {
      if (groups_.empty() || Draw(2) == 0) {
        groups_.push_back(harness_.forest->AddGroup(
            {static_cast<std::uint64_t>(1 + Draw(4)), 0.1 + 0.2 * Draw(5)}));
      }
      options.group = groups_[random_() % groups_.size()];
    }
    const SourceId source =
        harness_.Ask(node, leaves, options, static_cast<std::uint64_t>(Draw(3)));
    sources_[source.value()] = {std::vector<int>(leaves.size()), options.group, node};
  }

  void Withdraw() {
    if (sources_.empty()) return;
    auto chosen = sources_.begin();
    std::advance(chosen, Draw(static_cast<int>(sources_.size())));
    if (Draw(3) > 0) {
      harness_.forest->Withdraw(SourceId(chosen->first));
      chosen->second.withdrawn = true;
      return;
    }
    const NodeId node = chosen->second.node;
    harness_.forest->Withdraw(node);
    // A path may be below a node by content though it was made elsewhere: those may or may not be
    // asked.
    const Tokens& prefix = harness_.path(node);
    for (auto& [source, state] : sources_) {
      const Tokens& path = harness_.path(state.node);
      if (path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin())) {
        state.withdrawn = true;
      }
    }
  }

  void Receive(const std::vector<Answer>& answers) {
    const std::int64_t limit =
        std::min<std::int64_t>(shape_.options.context_tokens, shape_.options.kv_tokens);
    for (const Answer& answer : answers) {
      State& state = sources_.at(answer.source.value());
      ++state.answered.at(answer.index);
      if (state.group) ++answered_[state.group->value()];
      const Tokens path = harness_.PathOf(answer);
      RC_ASSERT(answer.path_tokens == path.size());
      const bool too_long = static_cast<std::int64_t>(path.size()) > limit;
      RC_ASSERT((answer.state == AnswerState::kTooLong) == too_long);
      if (!too_long) {
        RC_ASSERT(std::abs(answer.value - harness_.Expected(answer)) <= 1e-3F);
      }
    }
  }

  Shape shape_;
  std::mt19937_64 random_;
  Harness harness_;
  std::vector<NodeId> nodes_;
  std::vector<GroupId> groups_;
  std::map<std::uint32_t, State> sources_;
  std::map<std::uint32_t, std::uint64_t> answered_;
  std::set<Tokens> seen_;
  std::vector<Tokens> paths_;
};

RadixMode AnyRadix() {
  return *rc::gen::element(RadixMode::kNever, RadixMode::kWherePays, RadixMode::kAlways);
}

RC_GTEST_PROP(ForestProperty, EverythingIsAnsweredOnceInTinyArenas, (std::uint64_t seed)) {
  RandomForest::Shape shape;
  shape.options.kv_tokens = *rc::gen::inRange(1, 80);
  shape.options.chunk_tokens = *rc::gen::inRange(1, 40);
  shape.options.context_tokens = *rc::gen::inRange(1, 100);
  shape.options.keep_for_later = *rc::gen::arbitrary<bool>();
  shape.options.radix = AnyRadix();
  shape.options.kv_alignment = *rc::gen::element(1, 4, 16);
  shape.alphabet = *rc::gen::inRange(1, 6);
  shape.longest = *rc::gen::inRange(1, 30);
  RandomForest forest(shape, seed);
  const int rounds = *rc::gen::inRange(1, 12);
  for (int round = 0; round < rounds; ++round) {
    forest.Grow(*rc::gen::inRange(1, 20));
    for (int step = *rc::gen::inRange(0, 4); step > 0; --step) forest.Step();
  }
  forest.Finish();
  forest.CheckDone();
  forest.ForgetExpectations();
  forest.Step();
  RC_ASSERT(forest.harness().forest->counters().kv_held_tokens == 0);
}

RC_GTEST_PROP(ForestProperty, FreshIsMinimumWithUnlimitedKv, (std::uint64_t seed)) {
  RandomForest::Shape shape;
  shape.options.kv_tokens = 100000;
  shape.options.chunk_tokens = *rc::gen::inRange(1, 200);
  shape.options.radix = RadixMode::kAlways;
  shape.alphabet = *rc::gen::inRange(2, 6);
  shape.longest = *rc::gen::inRange(4, 30);
  shape.labels = shape.groups = shape.withdraws = false;
  shape.distinct = true;
  RandomForest forest(shape, seed);
  for (int round = 0; round < 4; ++round) {
    forest.Grow(*rc::gen::inRange(1, 30));
    if (*rc::gen::arbitrary<bool>()) forest.Step();
  }
  forest.Finish();
  forest.CheckDone();
  Harness& harness = forest.harness();
  RC_ASSERT(harness.minimum() == DistinctTokens(forest.asked_paths()));
  // A path that is the beginning of another that was asked before has its last token run again.
  RC_ASSERT(harness.fresh() - harness.recomputed() == harness.minimum());
  RC_ASSERT(harness.recomputed() <= forest.asked_paths().size());
}

RC_GTEST_PROP(ForestProperty, MinimumAgreesWithSortedPaths, (std::uint64_t seed)) {
  RandomForest::Shape shape;
  shape.options.kv_tokens = *rc::gen::inRange(200, 2000);
  shape.options.chunk_tokens = *rc::gen::inRange(1, 200);
  shape.options.radix = AnyRadix();
  shape.alphabet = *rc::gen::inRange(1, 6);
  shape.longest = *rc::gen::inRange(1, 15);
  shape.groups = shape.withdraws = false;
  RandomForest forest(shape, seed);
  for (int round = 0; round < 4; ++round) {
    forest.Grow(*rc::gen::inRange(1, 30));
    if (*rc::gen::arbitrary<bool>()) forest.Step();
  }
  forest.Finish();
  forest.CheckDone();
  std::vector<Tokens> paths;
  for (const Tokens& path : forest.asked_paths()) {
    if (static_cast<std::int64_t>(path.size()) <= shape.options.kv_tokens) paths.push_back(path);
  }
  RC_ASSERT(forest.harness().minimum() == DistinctTokens(paths));
  RC_ASSERT(forest.harness().fresh() >= forest.harness().minimum());
}

RC_GTEST_PROP(ForestProperty, CancelAtAnyTimeReturnsAllKv, (std::uint64_t seed)) {
  RandomForest::Shape shape;
  shape.options.kv_tokens = *rc::gen::inRange(30, 200);
  shape.options.chunk_tokens = *rc::gen::inRange(1, 40);
  shape.options.keep_for_later = *rc::gen::arbitrary<bool>();
  shape.options.radix = AnyRadix();
  shape.labels = *rc::gen::arbitrary<bool>();
  RandomForest forest(shape, seed);
  base::CancelFlag cancel;
  forest.Grow(*rc::gen::inRange(1, 60));
  for (int step = *rc::gen::inRange(0, 6); step > 0; --step) forest.Step();
  cancel.Cancel();
  RC_ASSERT_THROWS_AS(forest.harness().Step(&cancel), Error);
  RC_ASSERT(forest.harness().forest->counters().kv_held_tokens == 0);
  RC_ASSERT(forest.harness().forest->pending() == 0U);
  RandomForest after(shape, seed + 1);
  after.Grow(30);
  after.Finish();
  after.CheckDone();
  // The cancelled forest works on, over the same nodes.
  Harness& harness = forest.harness();
  std::vector<Answer> answers;
  harness.Ask(harness.root(), {MakeTokens({0, 1}), MakeTokens({0, 1, 1, 0, 2})});
  answers = harness.RunAll();
  RC_ASSERT(answers.size() == 2U);
  RC_ASSERT(harness.backend.fault() == "");
}

/// What a chunk may lack: the tenth that a leaf which did not fit leaves empty (Packer).
constexpr int kFullPercent = 90;

// KV that is kept never shrinks forward passes: while asks are waiting chunks are full, whatever
// else the arena holds.
RC_GTEST_PROP(ForestProperty, ChunksAreFullWhileAsksWait, (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  const auto chunk = static_cast<std::int32_t>(60 + draw(200));
  const std::uint64_t longest = 1 + draw(3 * static_cast<std::uint64_t>(chunk));
  const std::int64_t path = static_cast<std::int64_t>(longest) + 12;
  Harness h({.kv_tokens = 6 * chunk + path + static_cast<std::int64_t>(draw(2000)),
             .chunk_tokens = chunk,
             .radix = AnyRadix(),
             .keep_for_later = *rc::gen::arbitrary<bool>()});
  const std::uint64_t documents = 5 + draw(60);
  for (std::uint64_t round = 0; round < 2; ++round) {
    for (std::uint64_t i = 0; i < documents; ++i) {
      const NodeId document = h.Child(h.root(), TokensOf(i, 1 + i * 7919 % longest));
      h.forest->Expect(document, static_cast<double>(draw(3)) / 2);
      std::vector<Tokens> leaves;
      for (std::uint64_t leaf = draw(6); leaf > 0; --leaf) {
        leaves.push_back(TokensOf(1000 + draw(1000), 1 + draw(10)));
      }
      h.Ask(document, leaves);
    }
    h.forest->ResetCounters();
    h.RunAll();
    std::vector<std::int32_t> sizes = h.forest->counters().chunk_sizes;
    if (!sizes.empty()) sizes.pop_back();
    // One, where a new round finds most of the arena full of what it asks about.
    const auto thin = std::ranges::count_if(
        sizes, [&](std::int32_t size) { return 100 * size < kFullPercent * chunk; });
    RC_ASSERT(thin <= static_cast<std::ptrdiff_t>(round));
  }
  RC_ASSERT(h.backend.fault() == "");
}

}  // namespace
}  // namespace quail::infer
