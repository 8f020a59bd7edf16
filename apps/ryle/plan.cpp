// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/plan.hpp"

#include <cstdio>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"

namespace ryle::app {

void add_plan(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand(
      "plan", "what an observation needs: shapes, memory, operations, real-time margin here");
  auto file = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  sub->add_option("observation", *file, "observation file (TOML)")->required();
  sub->add_option("--set", *overrides, "change a key: section.key=value (repeatable)");
  add_common(*sub, context);
  sub->callback([&context, file, overrides] {
    context.action = [&context, file, overrides] {
      const auto plan = pipeline::make_plan(pipeline::load_observation(*file, *overrides));
      std::fputs((context.json ? pipeline::to_json(plan) + "\n" : pipeline::to_text(plan)).c_str(),
                 stdout);
      return 0;
    };
  });
}

}  // namespace ryle::app
